#include <algorithm>

#include "agent/keeper/taken_inputs.hpp"
#include "agent/session/session.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

Error another_call() {
  return {ErrorCode::idempotency_conflict, "Idempotency key was used for a different call",
          "Use a new key for each call that is not a repetition"};
}

Result<void> read_digest(const json& value, std::array<char, k_digest_length>& to) {
  const auto text = value.get<std::string>();
  if (text.size() != to.size()) {
    return fail(ErrorCode::bad_request, "Not a digest");
  }
  std::copy(text.begin(), text.end(), to.begin());
  return {};
}

}  // namespace

Result<void> Session::join(std::uint64_t request, const std::string& id, const json& head) {
  const auto record = m_state.read(id);
  if (!record && record.error().code == ErrorCode::process_expired) {
    return fail(ErrorCode::process_expired, "The command of this idempotency key was run, and its output has expired",
                "Use a new key to run it again");
  }
  if (!record) {
    return fail(record.error());
  }
  if (record->meta.call != head.at("call").get<std::string>() || record->meta.owner != head.at("owner")) {
    return fail(another_call());
  }
  auto waiter = read_waiter(request, id, head);
  return waiter ? wait_for(std::move(*waiter)) : fail(waiter.error());
}

Result<std::optional<OnceHeader>> Session::once_of(const json& head, Order order) {
  const auto once = head.find("once");
  if (once == head.end()) {
    return std::nullopt;
  }
  OnceHeader header;
  if (auto read =
          read_digest(once->at("key"), header.key).and_then([&] { return read_digest(once->at("call"), header.call); });
      !read) {
    return fail(read.error());
  }
  header.at = once->at("at").get<std::uint64_t>();
  header.seen_out = once->at("seen").at(0).get<std::uint64_t>();
  header.seen_err = once->at("seen").at(1).get<std::uint64_t>();
  header.order = static_cast<std::uint8_t>(order);
  return header;
}

/// The keeper knows while it lives, and has recorded it at the end.
Result<void> Session::taken(std::uint64_t request, const wire::Frame& frame) {
  const auto id = process_id_of(frame.head);
  const auto once = once_of(frame.head, Order::none);
  if (!id || !once) {
    return fail(!id ? id.error() : once.error());
  }
  if (!*once) {
    return fail(ErrorCode::bad_request, "No idempotency key");
  }
  const auto process = find(*id);
  if (!process) {
    return fail(process.error());
  }
  if ((*process)->link) {
    if (auto sent = (*process)->link->once(**once, 0, {}); !sent) {
      return sent;
    }
    (*process)->input_requests.push_back({request, 0, true});
    return {};
  }
  forget_if_done(*id);
  const auto record = m_state.read(*id);
  if (!record) {
    return fail(record.error());
  }
  TakenInputs inputs(record->status ? record->status->taken : std::vector<TakenInput>{});
  answer_once(request, 0, inputs.answer(**once, inputs.find(**once, 0).before));
  return {};
}

void Session::answer_once(std::uint64_t request, std::uint32_t accepted, const OnceAnswer& found) {
  if (found.before == static_cast<std::uint8_t>(Before::another_call)) {
    refuse(request, another_call());
    return;
  }
  answer(request, {{"accepted", accepted},
                   {"before", found.before == static_cast<std::uint8_t>(Before::yes)},
                   {"units", found.units},
                   {"seen", {found.seen_out, found.seen_err}}});
}

}  // namespace dockbridge::agent
