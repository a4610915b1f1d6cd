#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/hub.hpp"
#include "mcp/reply.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

class Call;

/// Whose requests these are and what they may use.
struct Caller {
  std::string owner = "local";
  std::optional<std::set<std::string>> tools{};  ///< none: all

  [[nodiscard]] bool may_use(const std::string& tool) const { return !tools || tools->contains(tool); }
};

/// What is known of the client when it asks: from the handshake, or from the request itself.
struct Peer {
  Revision revision = k_newest_handshake;
  json capabilities = json::object();
  std::optional<LogSeverity> log_from{};
  std::string client_name{};  ///< such as "claude-code"; empty if the client did not say

  [[nodiscard]] bool follows_tasks() const;
};

/// Whether a client's capabilities can be stored: an object of at most 64 KiB.
bool usable_capabilities(const json& capabilities);
/// The name in an implementation's description (`clientInfo`), cut to 100 characters; empty if absent.
std::string name_of_client(const json& client_info);
/// `params._meta[name]`, null if absent.
json meta_field(const json& params, const char* name);
/// The representation that a request asks for in its `_meta`, else `usual`.
Representation requested_representation(const json& params, Representation usual);
/// `params[name]` if it is there and a string.
std::optional<std::string> text_param(const json& params, const char* name);

/// One client's side of the protocol: takes its messages, answers each request exactly once, in any order. Knows
/// nothing of how the messages come: a transport hands them in with the sink that their answers go to. Any thread may
/// call.
class Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  using Calls = std::vector<std::shared_ptr<Call>>;

  /// `standing`: where what belongs to no request goes.
  static std::shared_ptr<Conversation> begin(Hub& hub, Caller caller, std::shared_ptr<ReplySink> standing);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  /// One message or batch from the client, as text. Answers it, but for what may take minutes: those are returned.
  [[nodiscard]] Calls receive(std::string_view text) { return receive(text, m_standing); }
  [[nodiscard]] Calls receive(std::string_view text, const std::shared_ptr<ReplySink>& sink);
  [[nodiscard]] Calls receive(json value, const std::shared_ptr<ReplySink>& sink);
  /// Answers for input the transport itself could not take.
  void refuse(const Malformed& malformed);

  [[nodiscard]] const Caller& caller() const { return m_caller; }
  /// What the handshake has agreed on; none before it.
  [[nodiscard]] std::optional<Revision> negotiated() const;
  /// Tells every running call to end what it started; nobody is there any more to be answered.
  void cancel_calls() { interrupt_calls(StopReason::cancelled); }
  /// Tells every running call to return without ending what it started.
  void detach_calls() { interrupt_calls(StopReason::detached); }
  /// Whether all calls had been answered by then.
  bool wait_for_calls(Deadline deadline);
  /// Says good-bye to those who listen for changes.
  void end_listening();

 private:
  friend class Call;
  friend class ToolCall;
  using Handler = std::shared_ptr<Call> (Conversation::*)(Request& request, const Peer& peer, Reply reply);
  struct Method {
    bool handshake;
    bool stateless;
    Handler handle;
  };
  struct Listening {
    Reply reply;
    std::vector<std::shared_ptr<void>> watches;
    Bulletin::Ticket ticket;
  };

  Conversation(Hub& hub, Caller caller, std::shared_ptr<ReplySink> standing);
  static const std::map<std::string_view, Method>& methods();

  Calls receive_batch(json batch, const std::shared_ptr<ReplySink>& sink);
  // What these return is the call, if the message asked for one.
  std::shared_ptr<Call> dispatch(Message message, const std::shared_ptr<ReplySink>& sink);
  std::shared_ptr<Call> handle_request(Request request, Reply reply);
  std::optional<Peer> stateless_peer(const Request& request, const json& version, Reply& reply);
  std::shared_ptr<Call> handle(Request& request, const Peer& peer, Reply reply);
  void handle_notification(const Notification& notification);
  void handle_answer(Answer answer);
  void interrupt_calls(StopReason reason);

  std::shared_ptr<Call> initialize(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> ping(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> discover(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> set_log_level(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> list_tools(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> call_tool(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> list_prompts(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> get_prompt(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> list_resources(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> list_templates(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> read_resource(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> subscribe(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> unsubscribe(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> listen(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> complete(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> get_task(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> update_task(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> cancel_task(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> list_tasks(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> await_task(Request& request, const Peer& peer, Reply reply);

  std::shared_ptr<Call> list_skills(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> get_skill(Request& request, const Peer& peer, Reply reply);

  /// Whether there is such a tool and this client may use it.
  [[nodiscard]] bool may_use(const std::string& tool) const;
  /// Filter for texts that name tools; empty if this client may use all.
  [[nodiscard]] Visible visible_tools() const;
  /// The skill of this URI; null if there is none that this client may see.
  [[nodiscard]] const Skill* visible_skill(const std::string& uri) const;
  /// The same for prompts.
  [[nodiscard]] const Prompt* visible_prompt(const std::string& name) const;
  /// False, and answered, for a client that does not follow tasks.
  static bool may_follow_tasks(const Peer& peer, Reply& reply);
  /// The task that a request names; null if this process has none such for the caller.
  [[nodiscard]] std::shared_ptr<Task> known_task(const Request& request) const;
  [[nodiscard]] json task_result(const TaskState& state, Revision revision) const;
  struct LostWork {
    std::string handle;
    bool runs = false;
  };
  using LostTaskAnswer = std::function<tl::expected<json, ProtocolError>(TaskState state, const LostWork& work,
                                                                         const CallContext& context)>;
  std::shared_ptr<Call> find_lost_task(Request& request, const Peer& peer, Reply reply, milliseconds patience,
                                       LostTaskAnswer answer);
  /// Whether this client may read, watch and complete a resource; false if there are none.
  [[nodiscard]] bool may_read(const std::string& uri) const;
  /// Filter for the resources and templates in its lists; empty if it may see all.
  [[nodiscard]] Visible visible_uris() const;
  bool is_running(const json& id);
  void follow_task(const std::string& id);
  /// Handshake era: requests of ours, and the client's answers to them.
  Result<json> ask(const json& requests, ReplySink& sink, const std::stop_token& stop);
  void hear(const Notice& notice);

  Hub& m_hub;
  const Server& m_server;
  const Caller m_caller;
  const std::string m_session;  // unique among the conversations of this process
  const std::shared_ptr<ReplySink> m_standing;

  mutable std::mutex m_mutex;  // guards everything below
  std::optional<Revision> m_negotiated;
  json m_capabilities = json::object();
  std::string m_client_name;
  std::optional<LogSeverity> m_log_from;
  std::map<json, std::shared_ptr<Interruption>> m_calls;  // not answered yet
  std::set<Interruption*> m_running;                      // calls that may still use this object
  std::condition_variable m_call_ended;
  std::uint64_t m_next_question = 1;
  std::map<json, std::optional<json>> m_questions;  // of ours, and the answers
  std::condition_variable_any m_answered;
  std::map<std::string, std::shared_ptr<void>> m_watched;  // resources, handshake era
  std::set<std::string> m_own_tasks;
  std::map<json, std::shared_ptr<Listening>> m_listening;
  Bulletin::Ticket m_ticket;
};

}  // namespace dockbridge::mcp
