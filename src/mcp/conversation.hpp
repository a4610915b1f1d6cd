#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/reply.hpp"
#include "mcp/server.hpp"
#include "mcp/tool.hpp"
#include "util/log.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::mcp {

/// One client's side of the protocol: takes its messages, answers each request exactly once, in any order.
/// `receive` is called by one thread, the transport's reader; what it passes on runs on the pool.
/// `send` may be called from any thread and takes one whole message at a time.
class Conversation {
 public:
  using Send = std::function<void(const json& message)>;

  Conversation(const Server& server, WorkerPool& pool, Log& log, std::string owner, Send send);
  /// Waits for the calls that run; interrupt them first.
  ~Conversation();

  /// One line of text from the client.
  void receive(std::string_view text);
  /// Answers for input the transport itself could not take.
  void refuse(const Malformed& malformed);
  /// Tells every running call to return without ending what it started.
  void detach_calls();
  /// Whether all calls had been answered by then.
  bool wait_for_calls(Deadline deadline);

 private:
  void dispatch(Message message, const std::shared_ptr<ReplySink>& sink);
  void handle_request(Request request, Reply reply);
  void handle_notification(const Notification& notification);
  void handle_stateless(Request& request, Reply reply, const json& version);
  void handle_handshake_era(Request& request, Reply reply);
  void initialize(const Request& request, Reply reply);
  void call_tool(Request request, Reply reply, Revision revision);
  ToolResult run_tool(const Tool& tool, const json& arguments, const json& progress_token,
                      const Interruption& interruption);
  void end_call(const json& id);
  void receive_batch(json batch);

  const Server& m_server;
  WorkerPool& m_pool;
  Log& m_log;
  std::string m_owner;
  std::shared_ptr<ReplySink> m_sink;
  std::optional<Revision> m_negotiated;  // the reader's

  std::mutex m_mutex;  // guards the calls
  std::condition_variable m_call_ended;
  std::map<json, std::shared_ptr<Interruption>> m_calls;  // not answered yet
  std::size_t m_running = 0;                              // calls that may still use this object
};

}  // namespace dockbridge::mcp
