#include "wire/session_messages.hpp"

#include "wire/error_message.hpp"
#include "wire/frame.hpp"
#include "wire/process_state.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::wire {

using nlohmann::json;

json greeting_of(const Hello& hello) {
  return {{"hello",
           {{"protocol", k_protocol_version},
            {"version", hello.version},
            {"machine", hello.machine},
            {"uid", hello.uid},
            {"pid", hello.pid},
            {"shell", hello.shell},
            {"home", hello.home},
            {"state", hello.state_directory}}}};
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
    return Hello{hello.at("version").text(),
                 hello.at("machine").text(),
                 hello.at("shell").text(),
                 hello.at("state").text(),
                 hello.at("home").text(),
                 hello.at("uid").number(UINT32_MAX),
                 static_cast<std::int64_t>(hello.at("pid").number(k_max_pid))};
  };
  auto hello = read_fields(head, ErrorCode::protocol_violation, read);
  return hello ? std::move(*hello) : fail(hello.error());
}

json to_json(const PingRequest& /*request*/) {
  return {{"op", name_of(PingRequest::k_operation)}};
}

json to_json(const CancelRequest& request) {
  return {{"op", name_of(CancelRequest::k_operation)}, {"request", request.request}};
}

CancelRequest CancelRequest::from_json(const Field& head) {
  return {head.at("request").number(UINT64_MAX)};
}

json to_json(const LineRequest& request) {
  return {{"op", name_of(LineRequest::k_operation)},
          {"path", request.path},
          {"device", request.device},
          {"inode", request.inode},
          {"key", request.key}};
}

LineRequest LineRequest::from_json(const Field& head) {
  return {head.at("path").text(), head.at("device").number(UINT64_MAX), head.at("inode").number(UINT64_MAX),
          head.at("key").text()};
}

json to_json(const WatchRequest& request) {
  json head = {{"op", name_of(WatchRequest::k_operation)},
               {"path", request.path},
               {"modifiedAtMs", request.modified_at_ms},
               {"timeoutMs", duration_to_json(request.timeout)}};
  if (!request.root.empty()) {
    head["root"] = request.root;
  }
  return head;
}

WatchRequest WatchRequest::from_json(const Field& head) {
  const auto root = head.find("root");
  return {head.at("path").text(), head.at("modifiedAtMs").signed_number(INT64_MAX), duration_from(head.at("timeoutMs")),
          root ? root->text() : ""};
}

json to_json(const WatchAnswer& answer) {
  return {{"changed", answer.changed}};
}

WatchAnswer WatchAnswer::from_json(const Field& head) {
  return {head.at("changed").flag()};
}

}  // namespace dockbridge::wire
