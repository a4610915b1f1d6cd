#include "wire/session_messages.hpp"

#include "wire/error_message.hpp"
#include "wire/frame.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::wire {

using nlohmann::json;

void Hello::visit(Codec& codec) {
  codec.write_only("protocol", k_protocol_version);
  codec("version", version);
  codec("machine", machine);
  codec("uid", uid, AtMost{UINT32_MAX});
  codec("pid", pid, AtMost{k_max_pid});
  codec("shell", shell);
  codec("home", home);
  codec("state", state_directory);
}

json greeting_of(const Hello& hello) {
  return {{"hello", to_json(hello)}};
}

json fatal_greeting_of(const Error& error) {
  return {{"fatal", to_json(error)}};
}

Result<Hello> hello_from_greeting(const json& head) {
  const auto read = [](const Field& greeting) -> Result<Hello> {
    if (const auto fatal = greeting.find("fatal")) {
      return fail(error_from(*fatal));
    }
    const Field hello = greeting.at("hello");
    if (hello.at("protocol").signed_number() != k_protocol_version) {
      return fail(ErrorCode::agent_version, "The agent uses another protocol version");
    }
    return from_json<Hello>(hello);
  };
  auto hello = read_fields(head, ErrorCode::protocol_violation, read);
  return hello ? std::move(*hello) : fail(hello.error());
}

void CancelRequest::visit(Codec& codec) {
  codec("request", request, k_any_number);
}

void LineRequest::visit(Codec& codec) {
  codec("path", path);
  codec("device", device, k_any_number);
  codec("inode", inode, k_any_number);
  codec("key", key);
}

void WatchRequest::visit(Codec& codec) {
  codec("path", path);
  codec("modifiedAtMs", modified_at_ms, [](const Field& field) { return field.signed_number(INT64_MAX); });
  codec("timeoutMs", timeout);
  codec.optional("root", root);
}

void WatchAnswer::visit(Codec& codec) {
  codec("changed", changed);
}

}  // namespace dockbridge::wire
