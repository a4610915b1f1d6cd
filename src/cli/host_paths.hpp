#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "util/error.hpp"

namespace dockbridge::cli {

/// Error `unsafe_host_path` if a file that the server obeys (configuration, tokens, TLS key) lies in one of these
/// directories, or is reached by a link in one of them.
Result<void> expect_own_files_outside(const Options& options, const std::vector<std::string>& directories);

/// Resolves the host paths of the options: opens the directories of --allow-host-path for the tools. Error
/// `unsafe_host_path` if the container could change one of them, or a file that the server obeys, by way of the
/// workspace.
Result<void> resolve_host_paths(Options& options);

}  // namespace dockbridge::cli
