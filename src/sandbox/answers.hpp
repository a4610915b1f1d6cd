#pragma once

#include <string_view>
#include <utility>

#include "error/error.hpp"
#include "sandbox/sandbox.hpp"
#include "util/clock.hpp"
#include "wire/fields.hpp"
#include "wire/operation.hpp"

namespace dockbridge::sandbox {

// What the requests about processes have in common in reading the agent's answers.

/// How long an answer may take, beyond what the request itself waits for.
inline constexpr milliseconds k_answer_patience{15'000};

inline Error violation() {
  return {ErrorCode::protocol_violation, "The agent's reply is malformed"};
}

template <typename Read>
auto Sandbox::read_answer(const wire::Frame& answer, Read read) {
  auto message = wire::read_fields(answer.head, ErrorCode::protocol_violation, read);
  return message ? std::move(message) : drop_session(message.error());
}

template <typename Message>
Result<Message> Sandbox::read_answer(const wire::Frame& answer) {
  return read_answer(answer, [&](const wire::Field& head) { return Message::from_json(head, answer.body); });
}

template <typename Request>
Result<wire::Frame> Sandbox::call_process(const Request& request, std::string_view body, milliseconds patience,
                                          const CallLimit& limit) {
  bool repeatable = wire::properties_of(Request::k_operation).repeatable;
  if constexpr (requires { request.once.has_value(); }) {
    repeatable = repeatable || request.once;  // the process takes each unit once
  }
  return call_process(request.process, wire::to_json(request), body, patience, repeatable, limit);
}

}  // namespace dockbridge::sandbox
