#pragma once

#include <string>
#include <string_view>

#include "docker/engine.hpp"
#include "docker/tar.hpp"
#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "util/clock.hpp"

namespace dockbridge::docker {

/// A file to place beside the one at `path`. It shows `examine_file` whether the engine's archives report real owners.
/// Podman's do not: they report the container's user as the owner of every file.
TarEntry owner_probe(const std::string& path);

/// Implements `sandbox::Channel::examine` with archives of the container's files that the engine makes. Symbolic links
/// are not followed. A path beneath a mount that the engine does not show is unsafe, whatever the archive has.
Result<sandbox::Trust> examine_file(Engine& engine, const sandbox::ContainerRun& run, const std::string& path,
                                    std::string_view content, Deadline deadline);

}  // namespace dockbridge::docker
