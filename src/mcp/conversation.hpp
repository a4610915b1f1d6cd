#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/reply.hpp"
#include "mcp/server.hpp"
#include "mcp/tool.hpp"
#include "util/clock.hpp"
#include "util/log.hpp"

namespace dockbridge::mcp {

/// One client's side of the protocol: takes its messages, answers each request exactly once, in any order.
/// `receive` is called by one thread at a time, the transport's reader; the calls it returns are made by any thread.
/// `send` may be called from any thread and takes one whole message at a time.
class Conversation {
 public:
  class Call;
  using Calls = std::vector<std::shared_ptr<Call>>;
  using Send = std::function<void(const json& message)>;

  Conversation(const Server& server, Log& log, std::string owner, Send send);
  /// Waits for the calls that run; interrupt them first.
  ~Conversation();

  /// One line of text from the client. Answers it, but for tool calls, which may take minutes: those are returned.
  [[nodiscard]] Calls receive(std::string_view text);
  /// Answers for input the transport itself could not take.
  void refuse(const Malformed& malformed);
  /// Tells every running call to return without ending what it started.
  void detach_calls();
  /// Whether all calls had been answered by then.
  bool wait_for_calls(Deadline deadline);

 private:
  Calls receive_batch(json batch);
  // What these return is the call, if the message asked for one.
  std::shared_ptr<Call> dispatch(Message message, const std::shared_ptr<ReplySink>& sink);
  std::shared_ptr<Call> handle_request(Request request, Reply reply);
  std::shared_ptr<Call> handle_stateless(Request& request, Reply reply, const json& version);
  std::shared_ptr<Call> handle_handshake_era(Request& request, Reply reply);
  std::shared_ptr<Call> take_call(Request request, Reply reply, Revision revision);
  bool is_running(const json& id);
  void initialize(const Request& request, Reply reply);
  void handle_notification(const Notification& notification);
  ToolResult run_tool(const Tool& tool, const json& arguments, const json& progress_token,
                      const Interruption& interruption);

  const Server& m_server;
  Log& m_log;
  std::string m_owner;
  std::shared_ptr<ReplySink> m_sink;
  std::optional<Revision> m_negotiated;  // the reader's

  std::mutex m_mutex;  // guards the calls
  std::condition_variable m_call_ended;
  std::map<json, Interruption*> m_calls;  // not answered yet
  std::size_t m_running = 0;              // calls that may still use this object
};

/// A tool's call that was taken on and has to be made or refused, once. The conversation waits for its end.
class Conversation::Call {
 public:
  struct Asked {
    json id;
    const Tool& tool;
    json arguments;
    json progress_token;
    Revision revision;
  };
  Call(Conversation& conversation, Asked asked, Reply reply);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Runs the tool and answers.
  void make();
  /// Answers that too many calls run.
  void refuse();

 private:
  void answer(ToolResult result);

  Conversation& m_conversation;
  Asked m_asked;
  Reply m_reply;
  Interruption m_interruption;
};

}  // namespace dockbridge::mcp
