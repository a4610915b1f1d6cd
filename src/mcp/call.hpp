#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "mcp/client_state.hpp"
#include "mcp/once.hpp"
#include "mcp/reply.hpp"
#include "mcp/tasks.hpp"
#include "mcp/tool.hpp"

namespace dockbridge::mcp {

/// Why a call is refused, and when it may be made again.
struct Refusal {
  enum class Reason {
    waited,      ///< it has waited for capacity for too long
    queue_full,  ///< too many calls run, and too many wait
    too_large,   ///< its message and those of other calls use too much memory
    stopping,    ///< the server is about to end
  };
  Reason reason;
  seconds retry_after{0};  ///< 0 means unknown
};

/// An accepted request whose work may take minutes. Any thread makes or refuses it, once. It keeps its conversation
/// alive, which can interrupt it until the reply is sent.
class Call {
 public:
  Call(ClientPtr client, Request request, Peer peer, Reply reply, TaskSupport task_support = TaskSupport::forbidden);
  virtual ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Does the work and replies.
  virtual void make() = 0;
  /// Replies with an error, without doing the work. A call that was cancelled gets no reply.
  virtual void refuse(const Refusal& refusal);

  [[nodiscard]] const Interruption& interruption() const { return *m_interruption; }
  [[nodiscard]] bool wants_progress() const;
  /// Reports the position in the queue. Not while it is made or refused.
  void report_position(std::size_t position);
  /// The call has waited for capacity, before it is made.
  void note_wait(milliseconds waited) { m_waited = waited; }

 protected:
  [[nodiscard]] CallContext context();
  [[nodiscard]] Hub& hub() const { return m_client->hub; }
  [[nodiscard]] const Server& server() const { return hub().server; }
  /// Lets the client use the request id again. Called before the reply is sent.
  void release_id();
  void finish(json result, Delivered delivered = {});
  void fail(const ProtocolError& error);
  /// The handle of this call's task, if it has or gets one.
  const std::string& handle();
  [[nodiscard]] TaskMode task_mode() const;
  void report_progress(const std::string& message);
  void become_task_if_due(Clock::time_point now);
  /// Answers with a task, unless the caller has too many.
  void become_task(std::optional<milliseconds> ttl, Clock::time_point now);

  ClientPtr m_client;
  Request m_request;
  Peer m_peer;
  Reply m_reply;
  std::shared_ptr<ReplySink> m_sink;  // for notifications; nullptr once the call has become a task
  std::shared_ptr<Interruption> m_interruption = std::make_shared<Interruption>();
  std::shared_ptr<Task> m_task;
  bool m_tool_failed = false;
  const Clock::time_point m_began = Clock::now();
  milliseconds m_waited{0};

 private:
  bool m_id_released = false;
  std::string m_handle;
  int m_progress = 0;
  json m_progress_token;
  const TaskSupport m_task_support;
};

/// A tool call. With an idempotency key it is made once. It becomes a task if it takes long and its client supports
/// tasks. Each call is logged and counted.
class ToolCall : public Call {
 public:
  ToolCall(ClientPtr client, Request request, Peer peer, Reply reply, const Tool& tool, json arguments);

  /// Replies with a task before the work begins. For a client that has asked for a task.
  void start_as_task(std::optional<milliseconds> ttl) { become_task(ttl, Clock::now()); }
  void make() override;
  void refuse(const Refusal& refusal) override;

 private:
  ToolResult run(const CallContext& context);
  ToolResult run_once(CallContext& context, const std::string& key);
  ToolResult failed(const std::exception& error, const CallContext& context);
  void answer(ToolResult result);

  const Tool& m_tool;
  json m_arguments;
};

/// Any other request that may block.
class PlainCall : public Call {
 public:
  using Work = std::function<tl::expected<json, ProtocolError>(const CallContext& context)>;
  PlainCall(ClientPtr client, Request request, Peer peer, Reply reply, Work work)
      : Call(std::move(client), std::move(request), std::move(peer), std::move(reply)), m_work(std::move(work)) {}
  void make() override;

 private:
  Work m_work;
};

}  // namespace dockbridge::mcp
