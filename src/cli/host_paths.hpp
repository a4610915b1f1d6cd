#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "error/error.hpp"

namespace dockbridge::cli {

/// Error `unsafe_host_path` if a file that controls the server (configuration, tokens, TLS key) lies in one of these
/// directories, or is reached through a link in one of them.
Result<void> expect_own_files_outside(const Options& options, const std::vector<std::string>& directories);

/// Resolves the host paths of the options and opens the directories of --allow-host-path for the tools. Error
/// `unsafe_host_path` if the container could redirect one of them, or change a file that controls the server, through
/// the workspace.
Result<void> resolve_host_paths(Options& options);

}  // namespace dockbridge::cli
