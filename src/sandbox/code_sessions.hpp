#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/code_session_counts.hpp"
#include "sandbox/process_control.hpp"
#include "sandbox/processes.hpp"
#include "sandbox/session_track.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"
#include "wire/code_session.hpp"

namespace dockbridge::sandbox {

// Code sessions of one container: Python sessions and shells that keep their state between calls. A tool uses them so:
//
//   auto opened = sessions.open(start, limit);                    // finds the live session, or starts one
//   auto sent = sessions.send_cell(opened->session, order, limit);  // at most once, however often it is repeated
//   wait with `WaitCondition::known_side = opened->session->next_offset()`, then `sessions.read_events(...)`, until
//   `opened->session->progress_of(sent->number, order.key)` is not unseen or running, or the process has ended.
//
// A shell (kind `shell`) needs the same calls. Its `CellOrder::request` makes the lines of its own protocol, and the
// exit status of a command is `SessionEvent::exit_status` of the end. Its output is [CellRecord::output_from,
// end->output_before): pass the range to the view as `OutputRequest::shown`, and limit the snapshot with `limited_to`.

/// State of a session from its side channel, and the results that clients have received. Shared by all calls that
/// use the session. Any thread may call.
class SessionProcess {
 public:
  SessionProcess(std::string id, std::string owner) : m_id(std::move(id)), m_owner(std::move(owner)) {}

  [[nodiscard]] const std::string& id() const { return m_id; }
  [[nodiscard]] const std::string& owner() const { return m_owner; }

  /// Calls `use` with the track, which must not be used elsewhere.
  template <typename Use>
  auto with_track(const Use& use) const {
    const MutexLock lock(m_mutex);
    return use(static_cast<const SessionTrack&>(m_track));
  }
  [[nodiscard]] std::uint64_t next_offset() const;
  [[nodiscard]] std::uint64_t last_cell() const;
  [[nodiscard]] bool is_busy() const;
  [[nodiscard]] std::optional<CellRecord> cell() const;
  [[nodiscard]] CellProgress progress_of(std::uint64_t cell, const std::string& key) const;
  std::optional<SessionEvent> take_answer(std::uint64_t request);
  void add(std::uint64_t offset, std::string_view bytes);
  /// Forgets the track, which frees memory. The next reading begins at the start of the stream.
  void restart_track();

  /// First line of a cell that this server has sent, which the event may lack.
  void note_first_line(std::uint64_t cell, std::string line);
  [[nodiscard]] std::string first_line_of_running() const;

  // For the counts: what this server has begun and not yet counted.
  void note_start(bool is_warm, Clock::time_point began);
  void note_sent_key(std::string key);
  struct News {
    std::optional<std::pair<bool, Clock::duration>> start{};    ///< warm or not, and how long it took
    std::optional<std::pair<CellStatus, double>> ended_cell{};  ///< with its run time in seconds
  };
  News take_news(Clock::time_point now);
  /// Returns whether a cell of this server is counted as running, and resets that.
  bool take_running_cell();

  /// The result of this cell was delivered to a client.
  void note_delivered(std::uint64_t cell);
  [[nodiscard]] bool was_delivered(std::uint64_t cell) const;
  /// A call has returned while this cell ran. Its result is delivered later.
  void note_left_running(std::uint64_t cell);
  /// Whether this server has left the last cell running, it has ended, and its result was not delivered.
  [[nodiscard]] bool owes_last_result() const;
  /// Output that was written before the latest end of a cell.
  [[nodiscard]] wire::Offsets output_end() const;

 private:
  const std::string m_id;
  const std::string m_owner;
  mutable Mutex m_mutex;
  SessionTrack m_track GUARDED_BY(m_mutex);
  std::pair<std::uint64_t, std::string> m_sent_line GUARDED_BY(m_mutex);
  std::string m_sent_key GUARDED_BY(m_mutex);  // of a cell that was not counted yet; empty: none
  std::optional<std::pair<bool, Clock::time_point>> m_start GUARDED_BY(m_mutex);  // warm or not, and when
  std::uint64_t m_delivered GUARDED_BY(m_mutex) = 0;
  std::uint64_t m_left_running GUARDED_BY(m_mutex) = 0;
};
using SessionHandle = std::shared_ptr<SessionProcess>;

/// Names a session.
struct SessionKey {
  std::string owner;
  wire::CodeKind kind = wire::CodeKind::python;
  std::string name;

  bool operator<(const SessionKey& other) const {
    return std::tie(owner, kind, name) < std::tie(other.owner, other.kind, other.name);
  }
};

/// A named session, and how to start its process if there is none.
struct SessionStart {
  std::string owner;
  wire::CodeSession session;  ///< `name` is not empty
  std::string label;          ///< shown in lists in place of a command
  std::string cwd;
  std::string rationale{};
  std::vector<std::pair<std::string, std::string>> environment{};
  std::size_t max_sessions = 0;  ///< limit of live sessions of this kind and owner; 0 means no limit
};

/// A session that has ended.
struct EndedSession {
  wire::ProcessState state;
  bool has_reached_idle_limit = false;
  std::uint64_t cells = 0;
  bool was_busy = false;  ///< it ended in its last cell
};

struct OpenedSession {
  SessionHandle session;
  bool is_new = false;  ///< this call has started it
  /// If it is new: the session that had the name before.
  std::optional<EndedSession> predecessor{};
  std::uint64_t number = 0;  ///< of the process, if it is new
  bool is_warm = false;      ///< if it is new: a warm interpreter was used
};

/// A cell to run.
struct CellOrder {
  std::string key;  ///< 32 hexadecimal digits that name this request
  std::string first_line{};
  /// The bytes for the side channel.
  std::function<std::string(std::uint64_t cell)> request;
};

struct SentCell {
  std::uint64_t number = 0;
  bool is_repeated = false;  ///< an earlier request with the same key has begun this cell; nothing was sent
};

/// A live session in a list.
struct ListedSession {
  wire::ProcessState state;
  std::uint64_t cells = 0;
  bool is_busy = false;
  std::string first_line{};  ///< of the running cell
};

/// The code sessions of one container. Any thread may call.
class CodeSessions {
 public:
  CodeSessions(Processes& processes, ProcessControl& control) : m_processes(processes), m_control(control) {}

  /// The live session with this name; nullptr if there is none. It may have ended a moment ago.
  Result<SessionHandle> find(const SessionKey& key, const CallLimit& limit);
  /// The live session, or a new one. Error `too_many_sessions` lists those that the owner has. Error `session_lost` if
  /// a restart of the container has ended the session of this name. The error is returned once. The next call starts a
  /// new session.
  Result<OpenedSession> open(const SessionStart& start, const CallLimit& limit);
  /// The latest session with this name, which may have ended; nullopt if there is none.
  Result<std::optional<wire::ProcessState>> latest(const SessionKey& key, const CallLimit& limit);
  /// The cell that an earlier call with this idempotency key has begun in the latest session of this name, which may
  /// have ended; nullopt if there is none.
  Result<std::optional<std::pair<SessionHandle, std::uint64_t>>> earlier_cell(const SessionKey& name,
                                                                              const std::string& key,
                                                                              const CallLimit& limit);
  /// To be called when the process was found to have ended and its events are not needed any more.
  void forget(const SessionKey& key, const std::string& process);
  /// Prevents that the next start reports this process as a predecessor.
  void note_end_is_known(const std::string& process);

  /// The handle of any process that is a code session. Does no I/O.
  SessionHandle handle(const std::string& process, const std::string& owner);
  /// Forgets a process that has ended and whose events are not needed any more.
  void drop(const std::string& process);
  /// Reads the events that the process has reported so far. `known_total` is the size of the side stream if the caller
  /// knows it; nothing is read then if there is nothing new.
  Result<void> read_events(const SessionHandle& session, const CallLimit& limit,
                           std::optional<std::uint64_t> known_total = {});
  /// Sends a cell. Errors: `session_busy` if another cell runs, `process_ended`. The cell has certainly not run after
  /// these. After any other error it may run if `outcome_unknown` is set.
  Result<SentCell> send_cell(const SessionHandle& session, const CellOrder& order, const CallLimit& limit);
  /// Sends another request, and waits for its answer. Error `session_busy` if a cell runs.
  Result<SessionEvent> ask(const SessionHandle& session, std::uint64_t request_id, const std::string& request,
                           const CallLimit& limit);
  /// This call has started the process. For the counts.
  static void note_start(const SessionHandle& session, const wire::ProcessState& state, Clock::time_point began);
  /// The process was found to have ended. For the counts.
  void note_died(const SessionHandle& session);
  [[nodiscard]] CodeSessionCounts::Values counts() const { return m_counts.values(); }
  /// Reason why a process ended before it ran any code; nullopt if it did not. Its events must have been read.
  std::optional<Error> startup_error(const SessionHandle& session, const wire::ProcessState& state,
                                     const CallLimit& limit);
  /// How a session that has ended came to its end.
  Result<EndedSession> explain_end(const wire::ProcessState& state, const CallLimit& limit);
  /// Calls `use` for each cell that has ended and is still stored, in their order.
  Result<void> for_each_cell(const std::string& process, const std::function<void(const CellRecord& cell)>& use,
                             const CallLimit& limit);
  /// The live, named sessions of an owner, the one that was unused longest first.
  Result<std::vector<ListedSession>> list(const std::string& owner, std::optional<wire::CodeKind> kind,
                                          const CallLimit& limit);

 private:
  struct Found {
    std::optional<wire::ProcessState> live;
    std::optional<wire::ProcessState> ended;  ///< the latest
    std::size_t live_sessions = 0;            ///< of this kind, with any name
  };
  Result<Found> look_up(const SessionKey& key, const CallLimit& limit);
  /// The session that had the name when it was last used; nullptr if none is known. Does no I/O.
  SessionHandle known(const SessionKey& key);
  /// Reads the events of a live session and remembers its name.
  Result<SessionHandle> use(const SessionKey& key, const wire::ProcessState& state, const CallLimit& limit);
  Result<OpenedSession> start(const SessionStart& start, const std::optional<wire::ProcessState>& previous,
                              const CallLimit& limit);
  /// Starts the session that follows `previous`, or finds it if another call has started it.
  Result<Snapshot> launch(const SessionStart& start, const std::string& previous, const std::string& salt,
                          const CallLimit& limit);
  Result<OpenedSession> opened_with(const SessionStart& start, const Snapshot& started, Clock::time_point began,
                                    const CallLimit& limit);
  /// Whether the name is new to this server and a recent list has shown at most half of the allowed sessions. Counts
  /// the session then.
  bool reserve_unlisted(const SessionStart& start, Clock::time_point now);
  void add_to_count(const SessionStart& start, std::ptrdiff_t sessions);
  void remember(const SessionKey& key, const std::string& process);
  Error too_many(const SessionStart& start, const CallLimit& limit);
  /// Reads the latest events. Error `process_ended` if the process has ended; its events have been read then, too.
  Result<void> refresh(const SessionHandle& session, const CallLimit& limit);
  /// Sends all bytes, each once per key.
  Result<void> send_bytes(const SessionHandle& session, const std::string& bytes, const std::string& key,
                          const CallLimit& limit);

  Processes& m_processes;
  ProcessControl& m_control;
  CodeSessionCounts m_counts;
  Mutex m_mutex;
  std::map<SessionKey, std::string> m_names GUARDED_BY(m_mutex);  // live sessions, as far as known
  std::map<std::string, SessionHandle> m_handles GUARDED_BY(m_mutex);
  std::list<std::string> m_latest_handles GUARDED_BY(m_mutex);  // the oldest first
  std::set<std::string> m_known_ends GUARDED_BY(m_mutex);
  std::set<SessionKey> m_used_names GUARDED_BY(m_mutex);  // that this server has opened
  struct ListedCount {
    std::size_t sessions = 0;  ///< live, by the latest list and the starts since then
    Clock::time_point counted{};
  };
  std::map<std::pair<std::string, wire::CodeKind>, ListedCount> m_listed_counts GUARDED_BY(m_mutex);
};

/// The snapshot as it was when the process had written only this output, after which no more of it follows.
Snapshot limited_to(Snapshot snapshot, const wire::Offsets& output);

/// 32 hexadecimal digits that no other request has.
std::string new_cell_key();

/// Text as one line of JSON that is also a Python literal.
std::string request_line(const nlohmann::json& request);

}  // namespace dockbridge::sandbox
