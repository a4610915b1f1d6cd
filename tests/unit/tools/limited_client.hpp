#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"
#include "mcp/hub.hpp"
#include "support/field.hpp"
#include "tools/prompts.hpp"
#include "tools/resources.hpp"
#include "tools/skills.hpp"
#include "tools/toolbox.hpp"
#include "unit/mcp/doubles.hpp"
#include "unit/sandbox/world.hpp"

namespace dockbridge::test {

/// A client of a whole server that may use only some tools, because its token or the server's selection says so.
class Limited {
 public:
  explicit Limited(std::optional<std::set<std::string>> token_tools, tools::Settings settings = {})
      : m_settings(std::move(settings)),
        m_conversation(mcp::Conversation::begin(
            m_hub, {"alice", std::move(token_tools)},
            std::make_shared<mcp::DirectSink>([this](const mcp::json& message) { return m_inbox.put(message); }))) {}

  /// The whole reply.
  mcp::json send(const std::string& method, const mcp::json& params) {
    for (const auto& call : m_conversation->receive(mcp::request_message(++m_id, method, params).dump())) {
      call->make();
    }
    return m_inbox.next();
  }
  mcp::json ask(const std::string& method, const mcp::json& params) { return field(send(method, params), "result"); }
  mcp::json complete(const mcp::json& ref, const std::string& name) {
    return field(ask("completion/complete", {{"ref", ref}, {"argument", {{"name", name}, {"value", ""}}}}),
                 "completion");
  }
  std::set<std::string> listed(const std::string& method, const std::string& list, const std::string& key,
                               const mcp::json& params = mcp::json::object()) {
    std::set<std::string> found;
    const mcp::json result = ask(method, params);
    for (const mcp::json& entry : field(result, list)) {
      found.insert(field(entry, key).get<std::string>());
    }
    return found;
  }

  std::atomic<int> asked{0};  // requests to the container

 private:
  World m_world{[this](FakeAgent& agent, const wire::Frame& request) {
    asked += request.head.at("op") == "ping" ? 0 : 1;
    behave_well(agent, request);
  }};
  const tools::Settings m_settings;
  tools::SandboxResources m_resources{m_world.sandbox};
  Log m_log{-1, LogLevel::off, LogFormat::text};
  const mcp::Server m_server{
      {"test", "Test", "1", m_settings.selection.keep_sentences(tools::k_instructions)},
      {tools::all_tools([this](const mcp::CallContext&) -> sandbox::Sandbox& { return m_world.sandbox; }, m_settings),
       tools::all_prompts(m_world.sandbox), &m_resources, nullptr, tools::all_skills(), tools::visible_text}};
  mcp::Hub m_hub{m_server, m_log};
  mcp::test::Inbox m_inbox;
  int m_id = 0;
  std::shared_ptr<mcp::Conversation> m_conversation;
};

}  // namespace dockbridge::test
