#pragma once

#include <optional>
#include <string>

#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "util/clock.hpp"
#include "wire/frame.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::sandbox {

/// The agent's description of itself, and whether the direct line to it is in use.
struct Hello : wire::Hello {
  /// Reason the direct line is not in use; nullopt if it is.
  std::optional<std::string> detour = "no shared directory is used";
};

/// Reads the greeting with which an agent starts. Later frames stay in `reader`. If there is no greeting, the error
/// contains what the program printed instead.
Result<Hello> read_greeting(ByteStream& stream, wire::FrameReader& reader, Deadline deadline);

}  // namespace dockbridge::sandbox
