#pragma once

#include <cstdint>

#include "agent/control/packets.hpp"
#include "wire/input_messages.hpp"

namespace dockbridge::agent {

// Idempotency keys in requests of the host and in packets of keepers.

/// Error for a key that was used for a different call.
Error key_conflict();
/// Header of an order that the keeper obeys once for each key.
OnceHeader once_header(const wire::Once& once, Order order);
/// Reply to a request with a key. Error `idempotency_conflict` if the key was used for a different call.
Result<wire::InputAnswer> keyed_answer(std::uint32_t accepted, const OnceAnswer& found);

}  // namespace dockbridge::agent
