#include <algorithm>

#include "agent/keeper/taken_inputs.hpp"
#include "agent/session/session.hpp"

namespace dockbridge::agent {

namespace {

Error another_call() {
  return {ErrorCode::idempotency_conflict, "Idempotency key was used for a different call",
          "Use a new key for each call that is not a repetition"};
}

}  // namespace

Result<void> Session::join(std::uint64_t request, const std::string& id, const wire::StartRequest& message) {
  const auto record = m_state.read(id);
  if (!record && record.error().code == ErrorCode::process_expired) {
    return fail(ErrorCode::process_expired, "The command of this idempotency key was run, and its output has expired",
                "Use a new key to run it again");
  }
  if (!record) {
    return fail(record.error());
  }
  if (record->meta.call != message.command.call || record->meta.owner != message.command.owner) {
    return fail(another_call());
  }
  auto waiter = make_waiter(request, id, message.wait);
  return waiter ? wait_for(std::move(*waiter)) : fail(waiter.error());
}

OnceHeader Session::header_of(const wire::Once& once, Order order) {
  OnceHeader header;
  std::copy(once.key.begin(), once.key.end(), header.key.begin());
  std::copy(once.call.begin(), once.call.end(), header.call.begin());
  header.at = once.at;
  header.seen_out = once.seen.first;
  header.seen_err = once.seen.second;
  header.order = static_cast<std::uint8_t>(order);
  return header;
}

/// The keeper knows while it lives, and has recorded it at the end.
Result<void> Session::taken(std::uint64_t request, const wire::TakenRequest& message) {
  const OnceHeader once = header_of(message.once, Order::none);
  const auto process = find(message.process);
  if (!process) {
    return fail(process.error());
  }
  if ((*process)->link) {
    if (auto sent = (*process)->link->once(once, 0, {}); !sent) {
      return sent;
    }
    (*process)->input_requests.push_back({request, 0, true});
    return {};
  }
  forget_if_done(message.process);
  const auto record = m_state.read(message.process);
  if (!record) {
    return fail(record.error());
  }
  TakenInputs inputs(record->status ? record->status->taken : std::vector<TakenInput>{});
  answer_once(request, 0, inputs.answer(once, inputs.find(once, 0).before));
  return {};
}

void Session::answer_once(std::uint64_t request, std::uint32_t accepted, const OnceAnswer& found) {
  if (found.before == static_cast<std::uint8_t>(Before::another_call)) {
    refuse(request, another_call());
    return;
  }
  const bool is_repeated = found.before == static_cast<std::uint8_t>(Before::yes);
  answer(request, wire::to_json(wire::InputAnswer{
                      accepted, wire::InputAnswer::Keyed{is_repeated, found.units, {found.seen_out, found.seen_err}}}));
}

}  // namespace dockbridge::agent
