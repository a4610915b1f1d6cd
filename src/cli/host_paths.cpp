#include "cli/host_paths.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "cli/http.hpp"
#include "tools/host_directories.hpp"
#include "util/path_walk.hpp"
#include "util/text.hpp"

namespace dockbridge::cli {

namespace {

namespace fs = std::filesystem;

/// For a file that does not exist yet, checks the nearest existing directory above it.
bool depends_on(const std::string& file, const std::vector<std::string>& directories) {
  std::error_code ignored;
  fs::path path = fs::absolute(file, ignored);
  auto walk = PathWalk::to(path.string());
  while (!walk && path.has_relative_path()) {
    path = path.parent_path();
    walk = PathWalk::to(path.string());
  }
  return walk && walk->depends_on(directories);
}

}  // namespace

Result<void> expect_own_files_outside(const Options& options, const std::vector<std::string>& directories) {
  struct OwnFile {
    std::string path;
    const char* option;
  };
  const std::array<OwnFile, 4> files = {{{options.config_file, "--config"},
                                         {token_file_of(options), "--token-file"},
                                         {options.http.tls_certificate, "--tls-cert"},
                                         {options.http.tls_key, "--tls-key"}}};
  for (const OwnFile& file : files) {
    if (!file.path.empty() && depends_on(file.path, directories)) {
      return fail(ErrorCode::unsafe_host_path,
                  fmt::format("The container can change the server's file {}", printable_line(file.path, 300)),
                  fmt::format("Share a smaller directory, or use {} with a file outside it", file.option));
    }
  }
  return {};
}

Result<void> resolve_host_paths(Options& options) {
  if (!options.container.workspace.empty()) {
    if (auto outside = expect_own_files_outside(options, {options.container.workspace}); !outside) {
      return outside;
    }
  }
  if (!options.host_directories.empty()) {
    auto opened = tools::HostDirectories::open(options.host_directories, options.container.workspace);
    if (!opened) {
      return fail(opened.error());
    }
    options.tools.host_directories = std::move(*opened);
  }
  return {};
}

}  // namespace dockbridge::cli
