#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "util/clock.hpp"
#include "wire/codec.hpp"
#include "wire/fields.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"

namespace dockbridge::sandbox {

class AgentLink;

/// Time that an answer may take in addition to the wait that the request asks for.
inline constexpr milliseconds k_answer_patience{15'000};

/// The error for a well-formed answer that does not fit its request.
inline Error violation() {
  return {ErrorCode::protocol_violation, "The agent's reply does not fit the request"};
}

/// Sends requests about single processes and reads the answers. Any thread may call.
class ProcessCalls {
 public:
  explicit ProcessCalls(AgentLink& link) : m_link(link) {}

  /// After a lost connection the request is sent again if it is idempotent.
  template <typename Request>
  Result<wire::Frame> send(const Request& request, milliseconds patience, const CallLimit& limit) const {
    bool repeatable = wire::properties_of(Request::k_operation).repeatable;
    if constexpr (requires { request.once.has_value(); }) {
      repeatable = repeatable || request.once;  // the process takes each unit once
    }
    const auto message = wire::outgoing(request);
    return send(request.process, message.head, message.body(), patience, repeatable, limit);
  }
  /// The message in an answer. A malformed one ends the connection.
  template <typename Read>
  auto read(const wire::Frame& answer, Read from_json) const {
    auto message = wire::read_fields(answer.head, ErrorCode::protocol_violation, from_json);
    return message ? std::move(message) : reject(message.error());
  }
  template <typename Message>
  Result<Message> read(const wire::Frame& answer) const {
    return read(answer, [&](const wire::Field& head) { return wire::from_json<Message>(head, answer.body); });
  }
  /// Ends the connection, because the agent cannot be trusted.
  tl::unexpected<Error> reject(Error error) const;
  /// The error for a process that does not exist, or that belongs to another owner.
  [[nodiscard]] Error unknown_process(const std::string& process, const CallLimit& limit) const;

 private:
  Result<wire::Frame> send(const std::string& process, const nlohmann::json& head, std::string_view body,
                           milliseconds patience, bool repeatable, const CallLimit& limit) const;

  AgentLink& m_link;
};

/// Generation of the container's run in a process id; nullopt if the text is not a process id.
std::optional<std::uint32_t> generation_of(const std::string& process);

}  // namespace dockbridge::sandbox
