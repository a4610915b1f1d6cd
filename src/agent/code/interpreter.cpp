#include "agent/code/interpreter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/program_path.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_os_release = 64 * 1024;

constexpr std::string_view k_apt = "apt-get update && apt-get install -y python3";
constexpr std::string_view k_apk = "apk add python3";
constexpr std::string_view k_dnf = "dnf install -y python3";
constexpr std::string_view k_zypper = "zypper install -y python3";
constexpr std::string_view k_pacman = "pacman -Sy --noconfirm python";

/// By ID and ID_LIKE of /etc/os-release.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> k_install_commands = {{
    {"debian", k_apt},
    {"ubuntu", k_apt},
    {"alpine", k_apk},
    {"wolfi", k_apk},
    {"chainguard", k_apk},
    {"fedora", k_dnf},
    {"rhel", k_dnf},
    {"centos", k_dnf},
    {"amzn", k_dnf},
    {"suse", k_zypper},
    {"opensuse", k_zypper},
    {"arch", k_pacman},
}};

/// The value of a line NAME=value or NAME="value".
std::string_view variable_in(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with(name) && line.substr(name.size()).starts_with('=')) {
      line.remove_prefix(name.size() + 1);
      const bool is_quoted = line.size() >= 2 && (line.front() == '"' || line.front() == '\'');
      return is_quoted ? line.substr(1, line.size() - 2) : line;
    }
  }
  return {};
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_program(const std::string& path) {
  return !is_directory(path) && ::access(path.c_str(), X_OK) == 0;
}

std::string absolute(const std::string& path, const InterpreterSearch& search) {
  if (path == "~" || path.starts_with("~/")) {
    return search.home + path.substr(1);
  }
  return path.starts_with('/') ? path : search.cwd + "/" + path;
}

Result<std::string> interpreter_in(const std::string& directory) {
  for (const char* name : {"/bin/python3", "/bin/python"}) {
    if (std::string path = directory + name; is_program(path)) {
      return path;
    }
  }
  return fail(ErrorCode::no_python, "No bin/python3 in " + directory,
              "Pass the directory of a virtual environment, or the path of an interpreter");
}

}  // namespace

Result<std::string> find_python(const std::string& wanted, const InterpreterSearch& search) {
  if (wanted.find('\0') != std::string::npos) {
    return fail(ErrorCode::bad_request, "The interpreter has a NUL byte");
  }
  if (!wanted.empty()) {
    const std::string path = absolute(wanted, search);
    if (is_directory(path)) {
      return interpreter_in(path);
    }
    if (is_program(path)) {
      return path;
    }
    const int reason = errno;
    if (wanted.find('/') == std::string::npos) {
      std::string found = find_program(wanted, search.search_path, search.cwd);
      return !found.empty() ? Result<std::string>(std::move(found))
                            : fail(ErrorCode::no_python, "Interpreter not found in PATH: " + wanted,
                                   "Pass the path of an interpreter or of a virtual environment");
    }
    return fail(ErrorCode::no_python, fmt::format("{}: {}", std::strerror(reason), path),
                "Pass the path of an interpreter or of a virtual environment");
  }
  for (const char* name : {"python3", "python"}) {
    if (std::string found = find_program(name, search.search_path, search.cwd); !found.empty()) {
      return found;
    }
  }
  const auto os_release = read_file_at(AT_FDCWD, "/etc/os-release", k_max_os_release);
  const std::string command = python_install_command(os_release.value_or(""));
  return fail(ErrorCode::no_python, "Python not found in the container",
              command.empty() ? "" : fmt::format("Install it: {}. Or pass the path of an interpreter", command));
}

std::string python_install_command(std::string_view os_release) {
  const std::string names = fmt::format("{} {}", variable_in(os_release, "ID"), variable_in(os_release, "ID_LIKE"));
  for (std::string_view left = names; !left.empty();) {
    std::string_view name = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(left.size(), name.size() + 1));
    name = name.substr(0, name.find('-'));  // opensuse-leap
    const auto known = std::find_if(k_install_commands.begin(), k_install_commands.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (known != k_install_commands.end()) {
      return std::string(known->second);
    }
  }
  return {};
}

}  // namespace dockbridge::agent
