#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mcp/reply.hpp"
#include "util/mutex.hpp"
#include "util/wakeup.hpp"

namespace dockbridge::mcp::http {

/// The queue of messages of one stream to a client. Any thread may send; one connection at a time takes. A resumable
/// outbox also keeps messages that were taken, for a client that lost its connection. Memory is bounded: a client that
/// does not read loses notifications, but no answer.
class Outbox : public ReplySink {
 public:
  /// `name`: part of the ids of its events. Empty means not resumable and without ids.
  explicit Outbox(std::string name = "") : m_name(std::move(name)) {}

  void answer(json message, Delivered delivered) override;
  void end_without_reply() override;
  void send(const json& message) override;
  void hang_up() override;
  /// Ends the stream. No request waits for it.
  void close() { end_without_reply(); }
  /// The client closed the connection before the first event, so it cannot resume. Later messages are dropped.
  void abandon();

  /// Makes this connection the one that takes, and ends the one before. A resuming one continues after event `after`.
  std::uint64_t attach(std::shared_ptr<Wakeup> taker, std::optional<std::uint64_t> after = std::nullopt);

  struct Taken {
    std::vector<std::pair<std::uint64_t, std::string>> messages;  ///< numbers from 1 on
    bool ended = false;                                           ///< no more messages for this connection
  };
  /// Messages since the last call. `ticket` is the value that `attach` returned.
  Taken take(std::uint64_t ticket);
  /// Whether the answer and everything before it was taken.
  [[nodiscard]] bool finished() const;
  /// The answer, if it is the only message. nullopt otherwise.
  std::optional<json> take_sole_answer();
  /// To be called when the answer was written to a connection. May be empty. If the write fails,
  /// it stays here for the connection that resumes.
  Delivered take_delivered();
  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool hung_up() const;
  [[nodiscard]] const std::string& name() const { return m_name; }

 private:
  struct Kept {
    std::uint64_t number;
    std::string text;
  };
  void put(std::string text, bool droppable) REQUIRES(m_mutex);
  void wake() REQUIRES(m_mutex);

  const std::string m_name;
  mutable Mutex m_mutex;
  std::deque<Kept> m_messages GUARDED_BY(m_mutex);
  std::optional<json> m_sole GUARDED_BY(m_mutex);  // an answer that is the first message, not yet converted to text
  Delivered m_delivered GUARDED_BY(m_mutex);
  std::size_t m_bytes GUARDED_BY(m_mutex) = 0;
  std::uint64_t m_last GUARDED_BY(m_mutex) = 0;
  std::uint64_t m_taken GUARDED_BY(m_mutex) = 0;
  bool m_done GUARDED_BY(m_mutex) = false;
  bool m_hung_up GUARDED_BY(m_mutex) = false;
  bool m_abandoned GUARDED_BY(m_mutex) = false;
  std::uint64_t m_ticket GUARDED_BY(m_mutex) = 0;
  std::shared_ptr<Wakeup> m_taker GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp::http
