#include "agent/session/idempotency.hpp"

#include <algorithm>

namespace dockbridge::agent {

Error key_conflict() {
  return {ErrorCode::idempotency_conflict, "Idempotency key was used for a different call"};
}

OnceHeader once_header(const wire::Once& once, Order order) {
  OnceHeader header;
  std::copy(once.key.begin(), once.key.end(), header.key.begin());
  std::copy(once.call.begin(), once.call.end(), header.call.begin());
  header.at = once.at;
  header.seen_out = once.seen.first;
  header.seen_err = once.seen.second;
  header.order = static_cast<std::uint8_t>(order);
  return header;
}

Result<wire::InputAnswer> keyed_answer(std::uint32_t accepted, const OnceAnswer& found) {
  if (found.before == static_cast<std::uint8_t>(Before::another_call)) {
    return fail(key_conflict());
  }
  const bool is_repeated = found.before == static_cast<std::uint8_t>(Before::yes);
  return wire::InputAnswer{accepted,
                           wire::InputAnswer::Keyed{is_repeated, found.units, {found.seen_out, found.seen_err}}};
}

}  // namespace dockbridge::agent
