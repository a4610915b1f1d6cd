#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "error/error.hpp"
#include "sandbox/sandbox.hpp"
#include "util/clock.hpp"

namespace dockbridge::sandbox {

// What the requests about processes have in common in reading the agent's answers.

/// How long an answer may take, beyond what the request itself waits for.
inline constexpr milliseconds k_answer_patience{15'000};

inline Error violation() {
  return {ErrorCode::protocol_violation, "The agent's reply is malformed"};
}

inline std::optional<Offsets> offsets_from(const nlohmann::json& value) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned()) {
    return std::nullopt;
  }
  const Offsets offsets{value[0].get<std::uint64_t>(), value[1].get<std::uint64_t>()};
  return std::max(offsets.first, offsets.second) <= wire::k_max_stream_bytes ? std::optional(offsets) : std::nullopt;
}

}  // namespace dockbridge::sandbox
