#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mcp/client_state.hpp"

namespace dockbridge::mcp {

class Call;

/// Base of the groups of methods, which `methods` lists by name. An object serves one request. Each method answers the
/// request, or returns a call that will.
class MethodGroup {
 public:
  explicit MethodGroup(ClientPtr client) : m_client(std::move(client)), m_server(m_client->hub.server) {}

 protected:
  const ClientPtr m_client;
  const Server& m_server;
};

/// Greetings and settings of a client.
class SessionMethods : public MethodGroup {
 public:
  using MethodGroup::MethodGroup;
  std::shared_ptr<Call> initialize(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> ping(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> discover(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> set_log_level(Request& request, const Peer& peer, Reply reply);
};

class ToolMethods : public MethodGroup {
 public:
  using MethodGroup::MethodGroup;
  std::shared_ptr<Call> list(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> call(Request& request, const Peer& peer, Reply reply);
};

/// Prompts, and completion of the arguments of prompts and resource templates.
class PromptMethods : public MethodGroup {
 public:
  using MethodGroup::MethodGroup;
  std::shared_ptr<Call> list(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> get(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> complete(Request& request, const Peer& peer, Reply reply);
};

class ResourceMethods : public MethodGroup {
 public:
  using MethodGroup::MethodGroup;
  std::shared_ptr<Call> list(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> list_templates(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> read(Request& request, const Peer& peer, Reply reply);
};

/// Subscriptions to changes: of single resources in the handshake revisions, by listening in the stateless one.
class SubscriptionMethods : public MethodGroup {
 public:
  using MethodGroup::MethodGroup;
  std::shared_ptr<Call> subscribe(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> unsubscribe(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> listen(Request& request, const Peer& peer, Reply reply);
};

/// The skills extension.
class SkillMethods : public MethodGroup {
 public:
  using MethodGroup::MethodGroup;
  std::shared_ptr<Call> list(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> get(Request& request, const Peer& peer, Reply reply);
};

/// Tasks, in the forms of the handshake revisions and of the stateless one.
class TaskMethods : public MethodGroup {
 public:
  using MethodGroup::MethodGroup;
  std::shared_ptr<Call> get(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> update(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> cancel(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> list(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> await_result(Request& request, const Peer& peer, Reply reply);

 private:
  struct LostWork {
    std::string handle;
    bool runs = false;
  };
  using LostTaskAnswer = std::function<tl::expected<json, ProtocolError>(TaskState state, const LostWork& work,
                                                                         const CallContext& context)>;
  /// Whether the client follows tasks. If not, it has been answered.
  static bool may_follow_tasks(const Peer& peer, Reply& reply);
  /// The task that a request names; nullptr if this process has none such for the caller.
  [[nodiscard]] std::shared_ptr<Task> known_task(const Request& request) const;
  /// Looks up a task that this process does not know, and passes its work to `answer` if the caller owns it.
  std::shared_ptr<Call> find_lost(Request& request, const Peer& peer, Reply reply, milliseconds patience,
                                  LostTaskAnswer answer);
};

}  // namespace dockbridge::mcp
