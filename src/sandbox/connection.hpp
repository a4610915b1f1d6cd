#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/greeting.hpp"
#include "sandbox/liveness.hpp"
#include "sandbox/outgoing_queue.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/mutex.hpp"
#include "wire/frame.hpp"

namespace dockbridge::sandbox {

/// A connection to one agent session. Any thread may call. One of the waiting threads has the turn: it reads and writes
/// for all of them. So a thread usually reads its own answer, which costs less than passing it to another thread. While
/// no call waits, the connection's own thread takes the turn. No input from the agent is trusted: a frame that violates
/// the protocol ends the connection.
class Connection {
 public:
  /// Takes ownership of the stream and waits for the agent's greeting. With a shared directory, the connection then
  /// moves to a direct line if the agent can use it (`DirectLine`).
  static Result<std::unique_ptr<Connection>> open(std::unique_ptr<ByteStream> stream, Deadline deadline,
                                                  const std::optional<SharedDirectory>& shared = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] const Hello& hello() const { return m_hello; }
  /// False once the stream has ended or the agent has broken the protocol, as far as the stream has been read.
  [[nodiscard]] bool alive() const { return m_alive; }
  /// Reads and writes what it can without waiting, unless another thread is doing so. Detects the end of a stream that
  /// no call was reading.
  void poll_stream();

  /// Sends a request and waits for its reply. Errors beside the agent's own: `connection_lost`, `cancelled` (by
  /// `stop`), `agent_silent` (the agent did not even answer a ping), `timed_out`. Their outcome is unknown if any part
  /// of the request was sent. A request that is given up is withdrawn: it is removed from the queue, or followed by a
  /// cancellation, so that the agent drops it if it has not started it.
  Result<wire::Frame> call(nlohmann::json head, std::string_view body, Deadline deadline, const std::stop_token& stop);
  /// Called with the reply to a posted request, by the thread that reads it. It must be quick, and must not use the
  /// connection.
  using ReplyHandler = std::function<void(const Result<wire::Frame>& reply)>;
  /// Sends a request without waiting. Without a handler the reply is dropped. If the connection is lost first, the
  /// handler is destroyed without being called.
  void post(nlohmann::json head, ReplyHandler on_reply = {});

 private:
  struct Mailbox {
    std::optional<Result<wire::Frame>> answer;
    std::condition_variable_any changed;
  };

  explicit Connection(std::unique_ptr<ByteStream> stream);
  Result<void> go_direct(const SharedDirectory& shared, Deadline deadline);
  void idle();
  void take_turn(milliseconds at_most) REQUIRES(m_mutex);
  void send_or_wake() REQUIRES(m_mutex);
  struct Exchanged {
    bool wrote_part = false;  ///< a part of a long request was written, and the rest was not
  };
  Result<Exchanged> exchange(milliseconds at_most, bool more_to_write);
  void pass_turn() REQUIRES(m_mutex);
  Result<bool> read_some();
  Result<Exchanged> write_some();
  Result<void> deliver(wire::Frame frame);
  void ping_if_due() REQUIRES(m_mutex);
  void break_off(const Error& error) REQUIRES(m_mutex);
  void wake();

  // Owned by the thread that has the turn.
  std::unique_ptr<ByteStream> m_stream;
  wire::FrameReader m_reader{wire::k_max_body_to_host};
  std::string m_writing;
  std::size_t m_written = 0;
  bool m_more_to_read = false;

  Hello m_hello;
  Fd m_wake;                         // interrupts the thread that has the turn
  std::atomic<bool> m_alive = true;  // false once `m_broken` is set

  Mutex m_mutex;
  bool m_turn_taken GUARDED_BY(m_mutex) = false;
  OutgoingQueue m_queue GUARDED_BY(m_mutex);
  std::map<std::uint64_t, Mailbox> m_mailboxes GUARDED_BY(m_mutex);
  std::map<std::uint64_t, ReplyHandler> m_handlers GUARDED_BY(m_mutex);
  std::uint64_t m_next_id GUARDED_BY(m_mutex) = 1;
  Liveness m_liveness GUARDED_BY(m_mutex);
  std::optional<Error> m_broken GUARDED_BY(m_mutex);
  bool m_closing GUARDED_BY(m_mutex) = false;
  std::condition_variable m_closed;

  std::thread m_idle_thread;
};

}  // namespace dockbridge::sandbox
