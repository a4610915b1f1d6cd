#pragma once

#include <nlohmann/json_fwd.hpp>

#include "error/error.hpp"
#include "wire/fields.hpp"

namespace dockbridge::wire {

/// An error as answers and the agent's greeting carry it: `code`, `message` and `nextStep` (docs/agent-protocol.md).
nlohmann::json to_json(const Error& error);
/// Throws BadField if a field is missing or malformed. Control characters in the texts become visible escapes.
Error error_from(const Field& field);

}  // namespace dockbridge::wire
