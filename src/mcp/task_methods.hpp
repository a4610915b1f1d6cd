#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mcp/client_state.hpp"

namespace dockbridge::mcp {

class Call;

/// The methods of tasks, in the forms of both eras.
class TaskMethods {
 public:
  explicit TaskMethods(ClientPtr client) : m_client(std::move(client)), m_server(m_client->hub.server) {}

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
  /// Answers for a task that this process does not know. `answer` gets what is left of it, if the caller owns it.
  std::shared_ptr<Call> find_lost(Request& request, const Peer& peer, Reply reply, milliseconds patience,
                                  LostTaskAnswer answer);

  const ClientPtr m_client;
  const Server& m_server;
};

}  // namespace dockbridge::mcp
