#include "sandbox/trusted_runs.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "util/file.hpp"
#include "util/path_walk.hpp"
#include "util/trusted_file.hpp"

namespace dockbridge::sandbox {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_max_record_bytes = 4096;
constexpr std::chrono::hours k_max_record_age{30 * 24};

/// nullopt if the container's id cannot be part of a file name.
std::optional<std::string> record_name(const ContainerRun& run, const std::string& agent_name) {
  const bool is_plain = !run.id.empty() && run.id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_plain ? std::optional(run.id + "." + agent_name) : std::nullopt;
}

std::string first_line(const ContainerRun& run) {
  return run.started_at + "\n";
}

bool is_record_name(const std::string& name) {
  return name.find(".agent-") != std::string::npos;
}

/// To be called only for a directory that the container cannot redirect.
void remove_old_records(const std::string& directory) {
  const auto oldest = fs::file_time_type::clock::now() - k_max_record_age;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (is_record_name(entry.path().filename()) && entry.is_regular_file(ignored) &&
        entry.last_write_time(ignored) < oldest) {
      fs::remove(entry.path(), ignored);
    }
  }
}

/// Opens the directory, unless the container can write to it or to a link in its path.
std::optional<PathWalk> safe_walk(const std::string& directory, const ContainerRun& run) {
  auto walk = PathWalk::to(directory);
  return walk && walk->is_directory() && !walk->depends_on(run.writable_mounts) ? std::optional(std::move(*walk))
                                                                                : std::nullopt;
}

}  // namespace

std::optional<std::string> TrustedRuns::find(const ContainerRun& run, const std::string& agent_name) const {
  const auto name = record_name(run, agent_name);
  if (m_directory.empty() || !name) {
    return std::nullopt;
  }
  if (!safe_walk(m_directory, run)) {
    return std::nullopt;
  }
  const auto record = read_trusted_file(m_directory + "/" + *name, {.what = "record",
                                                                    .code = ErrorCode::io_error,
                                                                    .forbidden_mode = S_IWGRP | S_IWOTH,
                                                                    .max_bytes = k_max_record_bytes});
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
  fs::path existing = m_directory;
  while (!fs::exists(existing, failed) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  if (!safe_walk(existing, run)) {
    return;
  }
  fs::create_directories(m_directory, failed);
  if (const auto walk = safe_walk(m_directory, run)) {
    remove_old_records(m_directory);
    (void)replace_file_at(walk->fd().get(), *name, first_line(run) + path);
  }
}

}  // namespace dockbridge::sandbox
