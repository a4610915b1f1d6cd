#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "mcp/call.hpp"
#include "mcp/call_scheduler.hpp"
#include "mcp/conversation.hpp"
#include "support/field.hpp"
#include "unit/mcp/doubles.hpp"

namespace dockbridge::mcp::test {

using dockbridge::test::field;

inline const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "none";
    case StopReason::cancelled:
      return "cancelled";
    case StopReason::timed_out:
      return "timed out";
    case StopReason::detached:
      return "detached";
  }
  return "";
}

inline ToolResult text_result(const std::string& text) {
  return {text, json::object()};
}

/// A client with its conversation, over the tools of these tests.
class Client {
 public:
  explicit Client(const CallAdmission::Limits& limits = {.calls = 16})
      : m_limits(limits),
        m_server({"test", "Test", "1", "Be kind."}, {tools()}),
        m_conversation(Conversation::begin(m_hub, {"alice"}, std::make_shared<DirectSink>([this](const json& message) {
                                             return inbox.put(message) && !gone;
                                           }))) {
    m_hub.is_client_timeout = [](std::string_view reason) { return reason == "own timeout"; };
  }

  void send(const json& message) { send_text(message.dump()); }
  void send_text(const std::string& text) {
    for (auto& call : m_conversation->receive(text)) {
      m_scheduler.submit(call, {"alice", m_limits.calls});
    }
  }
  void request(const json& id, const std::string& method, const json& params = json::object()) {
    send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
  }
  void call(const json& id, const std::string& name, const json& arguments = json::object(),
            const json& meta = nullptr) {
    json params = {{"name", name}, {"arguments", arguments}};
    if (!meta.is_null()) {
      params["_meta"] = meta;
    }
    request(id, "tools/call", params);
  }
  void cancel(const json& id, const json& reason = nullptr) {
    json params = {{"requestId", id}};
    if (!reason.is_null()) {
      params["reason"] = reason;
    }
    send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", params}});
  }
  void initialize(const std::string& version) {
    request("init", "initialize", {{"protocolVersion", version}});
    CHECK(field(inbox.next(), "result", "protocolVersion") == version);
  }
  /// Checks that nothing else was sent: the answer to a ping is the next message.
  void expect_nothing_more() {
    REQUIRE(m_conversation->wait_for_calls(Deadline::after(k_patience)));
    request("nothing more", "ping");
    CHECK(inbox.next() == json::parse(R"({"jsonrpc":"2.0","id":"nothing more","result":{}})"));
  }
  Conversation& conversation() { return *m_conversation; }
  CallScheduler& scheduler() { return m_scheduler; }
  Metrics& metrics() { return m_hub.metrics; }

  Inbox inbox;
  Gate gate;
  Deliveries deliveries;  // of "gate"
  std::atomic<bool> gone{false};

 private:
  std::vector<Tool> tools() {
    return {tool("echo", [](const json& arguments, const CallContext&) { return text_result(arguments.dump()); }),
            tool("gate",
                 [this](const json&, const CallContext& context) {
                   ToolResult result = text_result(name_of(gate.pass(context)));
                   result.on_delivered = deliveries.expect();
                   return result;
                 }),
            tool("late progress",
                 [this](const json&, const CallContext& context) {
                   gate.pass(context);  // until it is cancelled
                   context.report_progress("late");
                   return text_result("");
                 }),
            tool("owner", [](const json&, const CallContext& context) { return text_result(context.owner); }),
            tool("throw", [](const json&, const CallContext&) -> ToolResult { throw std::runtime_error("a secret"); }),
            tool("refuse",
                 [](const json&, const CallContext&) {
                   return error_result({ErrorCode::io_error, "it did not work", "Try again"});
                 }),
            tool("progress", [](const json& arguments, const CallContext& context) {
              for (int i = 0; i < arguments.value("steps", 0); ++i) {
                context.report_progress("step");
              }
              return text_result(context.wants_progress() ? "told" : "not asked");
            })};
  }

  const CallAdmission::Limits m_limits;
  Log m_log{-1, LogLevel::off, LogFormat::text};
  Server m_server;
  Hub m_hub{m_server, m_log};
  CallScheduler m_scheduler{m_limits, m_hub.metrics};
  std::shared_ptr<Conversation> m_conversation;
};

inline std::string text_of(const json& answer) {
  REQUIRE(answer.contains("result"));
  return field(answer, "result", "content", 0, "text");
}

}  // namespace dockbridge::mcp::test
