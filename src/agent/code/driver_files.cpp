#include "agent/code/driver_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"

// Defined by the assembler file that cmake/embed_drivers.cmake writes.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" const char dockbridge_drivers_begin[];
extern "C" const char dockbridge_drivers_end[];
extern "C" const char dockbridge_drivers_digest[];
// NOLINTEND(readability-identifier-naming)

namespace dockbridge::agent {

namespace {

std::string_view take_text(std::string_view& bytes) {
  const std::string_view text = bytes.substr(0, bytes.find('\0'));
  bytes.remove_prefix(text.size() + 1);
  return text;
}

std::vector<DriverFile> parse_driver_files(std::string_view bytes) {
  std::vector<DriverFile> files;
  while (!bytes.empty()) {
    const std::string_view name = take_text(bytes);
    const std::string_view digits = take_text(bytes);
    std::size_t size = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), size);
    files.push_back({std::string(name), bytes.substr(0, size)});
    bytes.remove_prefix(size);
  }
  return files;
}

Fd open_directory_at(int directory_fd, const std::string& name) {
  return Fd(::openat(directory_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// A directory may be incomplete after a crash of the machine.
bool is_installed(int state_directory_fd) {
  const Fd directory = open_directory_at(state_directory_fd, drivers_directory());
  const auto& files = driver_files();
  return directory && std::all_of(files.begin(), files.end(), [&](const DriverFile& file) {
           const auto content = read_regular_at(directory.get(), file.name, file.content.size() + 1);
           return content && *content == file.content;
         });
}

Result<void> write_files(int directory_fd) {
  for (const DriverFile& file : driver_files()) {
    const Fd created = create_anew_at(directory_fd, file.name);
    auto written = created ? write_all(created.get(), file.content) : fail(errno_error(file.name));
    if (!written) {
      return written;
    }
  }
  return {};
}

void remove_files(int state_directory_fd, const std::string& name) {
  if (const Fd directory = open_directory_at(state_directory_fd, name)) {
    for (const DriverFile& file : driver_files()) {
      ::unlinkat(directory.get(), file.name.c_str(), 0);
    }
  }
  ::unlinkat(state_directory_fd, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

const std::vector<DriverFile>& driver_files() {
  static const std::vector<DriverFile> files = parse_driver_files(
      {dockbridge_drivers_begin, static_cast<std::size_t>(dockbridge_drivers_end - dockbridge_drivers_begin)});
  return files;
}

std::string_view driver_file(std::string_view name) {
  const auto& files = driver_files();
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
  return found == files.end() ? std::string_view() : found->content;
}

std::string drivers_directory() {
  return std::string("drivers_") + dockbridge_drivers_digest;
}

Result<void> install_drivers(int state_directory_fd) {
  if (is_installed(state_directory_fd)) {
    return {};
  }
  const auto refuse = [](const Error& error) {
    return fail(ErrorCode::state_not_writable, "Cannot install the driver of code sessions: " + error.message);
  };
  const std::string name = drivers_directory();
  const std::string temporary = fmt::format("{}.{}_{}", name, ::getpid(), unix_milliseconds_now());
  if (::mkdirat(state_directory_fd, temporary.c_str(), 0700) != 0) {
    return refuse(errno_error(temporary));
  }
  const Fd directory = open_directory_at(state_directory_fd, temporary);
  auto written = directory ? write_files(directory.get()) : fail(errno_error(temporary));
  if (written && ::renameat(state_directory_fd, temporary.c_str(), state_directory_fd, name.c_str()) != 0) {
    // Another session was faster, or the existing directory is damaged. That one is moved away and stays, because it
    // may contain other files.
    const std::string damaged = temporary + ".damaged";
    const bool is_replaced = !is_installed(state_directory_fd) &&
                             ::renameat(state_directory_fd, name.c_str(), state_directory_fd, damaged.c_str()) == 0 &&
                             ::renameat(state_directory_fd, temporary.c_str(), state_directory_fd, name.c_str()) == 0;
    if (!is_replaced && !is_installed(state_directory_fd)) {
      written = fail(errno_error(name));
    }
  }
  remove_files(state_directory_fd, temporary);  // does nothing after a rename
  return written ? written : refuse(written.error());
}

}  // namespace dockbridge::agent
