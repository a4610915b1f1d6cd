#include "agent/session/input_requests.hpp"

#include <fmt/format.h>

#include <csignal>
#include <string_view>

#include "agent/control/taken_inputs.hpp"
#include "agent/session/idempotency.hpp"
#include "agent/session/survivors.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

static_assert(wire::k_input_piece_bytes + sizeof(OnceHeader) <= k_max_control_payload);

}  // namespace

Result<void> InputRequests::input(std::uint64_t request, const wire::InputRequest& message) {
  const auto process = m_processes.find_live(message.process);
  if (!process) {
    return fail(process.error());
  }
  const std::string_view bytes = message.input;
  if (bytes.size() > k_max_control_payload - (message.once ? sizeof(OnceHeader) : 0)) {
    return fail(ErrorCode::bad_request, "Too much input for one request");
  }
  const std::uint32_t how = (message.then_end ? k_then_end : 0) | (message.as_paste ? k_as_paste : 0);
  KeeperLink& link = *(*process)->link;
  if (auto sent =
          message.once ? link.once(once_header(*message.once, Order::input), how, bytes) : link.input(bytes, how);
      !sent) {
    return sent;
  }
  (*process)->input_requests.push_back({request, bytes.size(), message.once.has_value()});
  return {};
}

Result<void> InputRequests::keys(std::uint64_t request, const wire::KeysRequest& message) {
  const auto process = m_processes.find_live(message.process);
  if (!process) {
    return fail(process.error());
  }
  const std::string names = fmt::format("{}", fmt::join(message.keys, " "));
  KeeperLink& link = *(*process)->link;
  if (auto sent = message.once ? link.once(once_header(*message.once, Order::keys), 0, names) : link.keys(names);
      !sent) {
    return sent;
  }
  (*process)->input_requests.push_back({request, message.keys.size(), message.once.has_value()});
  return {};
}

Result<void> InputRequests::side(std::uint64_t request, const wire::SideRequest& message) {
  const auto process = m_processes.find_live(message.process);
  if (!process) {
    return fail(process.error());
  }
  if (message.bytes.size() > wire::k_input_piece_bytes) {
    return fail(ErrorCode::bad_request, "Too many bytes for one request");
  }
  KeeperLink& link = *(*process)->link;
  if (auto sent = message.once ? link.once(once_header(*message.once, Order::side), 0, message.bytes)
                               : link.side(message.bytes);
      !sent) {
    return sent;
  }
  (*process)->input_requests.push_back({request, message.bytes.size(), message.once.has_value()});
  return {};
}

Result<void> InputRequests::signal(std::uint64_t request, const wire::SignalRequest& message) {
  const auto process = m_processes.find_live(message.process);
  if (!process) {
    // With a key, only the keeper knows whether the signal was sent before.
    return message.once ? fail(process.error())
                        : signal_survivors_of(request, message.process, message.number, process.error());
  }
  KeeperLink& link = *(*process)->link;
  if (auto sent = message.once ? link.once(once_header(*message.once, Order::signal),
                                           static_cast<std::uint32_t>(message.number), {})
                               : link.signal(message.number);
      !sent) {
    return sent;
  }
  if (message.once) {
    (*process)->input_requests.push_back({request, 1, true});
  } else {
    m_replies.send(request, json::object());
  }
  return {};
}

/// The keeper knows the answer while it lives, and records it at the end.
Result<void> InputRequests::taken(std::uint64_t request, const wire::TakenRequest& message) {
  const OnceHeader once = once_header(message.once, Order::none);
  const auto process = m_processes.find(message.process);
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
  const auto record = m_state.read(message.process);
  if (!record) {
    return fail(record.error());
  }
  TakenInputs inputs(record->status ? record->status->taken : std::vector<TakenInput>{});
  const auto answer = keyed_answer(0, inputs.answer(once, inputs.find(once, 0).before));
  if (!answer) {
    return fail(answer.error());
  }
  m_replies.send(request, *answer);
  return {};
}

Result<void> InputRequests::resize(std::uint64_t request, const wire::ResizeRequest& message) {
  const auto process = m_processes.find_live(message.process);
  if (auto sent = process ? (*process)->link->resize(message.size) : fail(process.error()); !sent) {
    return sent;
  }
  m_replies.send(request, json::object());
  return {};
}

Result<void> InputRequests::end(std::uint64_t request, const wire::EndRequest& message) {
  const auto process = m_processes.find_live(message.process);
  if (!process) {
    // Without a keeper there is no grace period.
    return signal_survivors_of(request, message.process, SIGKILL, process.error());
  }
  const auto grace_ms = static_cast<std::uint32_t>(message.grace.count());
  if (auto sent = (*process)->link->end_tree(message.cause, grace_ms); !sent) {
    return sent;
  }
  m_replies.send(request, json::object());
  return {};
}

Result<void> InputRequests::signal_survivors_of(std::uint64_t request, const std::string& process, int signal,
                                                const Error& not_found) {
  if (not_found.code != ErrorCode::process_ended || signal_survivors(process, signal) == 0) {
    return fail(not_found);
  }
  m_replies.send(request, json::object());
  return {};
}

}  // namespace dockbridge::agent
