#pragma once

#include <string>
#include <string_view>

#include "docker/engine.hpp"
#include "docker/tar.hpp"
#include "sandbox/channel.hpp"
#include "util/clock.hpp"
#include "util/error.hpp"

namespace dockbridge::docker {

/// A file to put beside the one at `path`, by which `examine_file` sees whether the engine's archives show real owners.
/// Podman's do not: there everything belongs to the container's user.
TarEntry owner_probe(const std::string& path);

/// `sandbox::Channel::examine` by means of archives that the engine makes of the container's files. Symbolic links are
/// not followed. What is beneath a mount that the engine does not show is unsafe, whatever the archive says.
Result<sandbox::Trust> examine_file(Engine& engine, const sandbox::ContainerRun& run, const std::string& path,
                                    std::string_view content, Deadline deadline);

}  // namespace dockbridge::docker
