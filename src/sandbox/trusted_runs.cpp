#include "sandbox/trusted_runs.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "util/fd.hpp"
#include "util/file.hpp"
#include "util/path_walk.hpp"
#include "util/trusted_file.hpp"

namespace dockbridge::sandbox {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_max_record_bytes = 4096;
constexpr std::chrono::hours k_max_record_age{30 * 24};

/// nullopt if the container's id is unfit for a file name.
std::optional<std::string> record_name(const ContainerRun& run, const std::string& agent_name) {
  const bool is_plain = !run.id.empty() && run.id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_plain ? std::optional(run.id + "." + agent_name) : std::nullopt;
}

std::string first_line(const ContainerRun& run) {
  return run.started_at + "\n";
}

void remove_old_records(const std::string& directory) {
  const auto oldest = fs::file_time_type::clock::now() - k_max_record_age;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.is_regular_file(ignored) && entry.last_write_time(ignored) < oldest) {
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace

std::optional<std::string> TrustedRuns::find(const ContainerRun& run, const std::string& agent_name) const {
  const auto name = record_name(run, agent_name);
  if (m_directory.empty() || !name) {
    return std::nullopt;
  }
  const std::string path = m_directory + "/" + *name;
  const auto walk = PathWalk::to(path);
  if (!walk || walk->depends_on(run.writable_mounts)) {
    return std::nullopt;
  }
  const auto record = read_trusted_file(
      path,
      {.what = "record", .code = "io_error", .forbidden_mode = S_IWGRP | S_IWOTH, .max_bytes = k_max_record_bytes});
  if (!record || !*record || !(*record)->starts_with(first_line(run))) {
    return std::nullopt;
  }
  return (*record)->substr(first_line(run).size());
}

void TrustedRuns::add(const ContainerRun& run, const std::string& path) const {
  const auto name = record_name(run, fs::path(path).filename());
  if (m_directory.empty() || !name) {
    return;
  }
  std::error_code failed;
  fs::create_directories(m_directory, failed);
  const Fd directory(::open(m_directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return;
  }
  remove_old_records(m_directory);
  (void)replace_file_at(directory.get(), *name, first_line(run) + path);
}

}  // namespace dockbridge::sandbox
