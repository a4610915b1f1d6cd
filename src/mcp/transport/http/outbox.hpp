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

/// The messages of one stream to a client, between those who send them and the connection that carries them. Any thread
/// may send; one connection at a time takes. A resumable one keeps a while what was taken, for a client that lost its
/// connection; memory is bounded in both kinds: a client that does not read loses notifications, never an answer.
class Outbox : public ReplySink {
 public:
  /// `name`: stands in the ids of its events; empty: not resumable, and without ids.
  explicit Outbox(std::string name = "") : m_name(std::move(name)) {}

  void answer(json message, Delivered delivered) override;
  void nothing() override;
  void tell(const json& message) override;
  void hang_up() override;
  /// No more will come, and nobody waits for it.
  void close() { nothing(); }
  /// The client left before the first event, so it cannot resume. What comes is dropped.
  void abandon();

  /// The connection that takes from now on; who took before is told to go. After `number` events, if it resumes.
  std::uint64_t attach(std::shared_ptr<Wakeup> taker, std::optional<std::uint64_t> after = std::nullopt);

  struct Taken {
    std::vector<std::pair<std::uint64_t, std::string>> messages;  ///< numbers from 1 on
    bool ended = false;                                           ///< after these nothing comes on this connection
  };
  /// What has come since the last time; `ticket` is what attach returned.
  Taken take(std::uint64_t ticket);
  /// Whether the answer is there, and everything was taken.
  [[nodiscard]] bool finished() const;
  /// The one answer if it is there and nothing else was or is to be sent; else none.
  std::optional<json> take_sole_answer();
  /// To be called when the answer was written to a connection. Empty if there is nobody to notify. If the write fails,
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
  std::optional<json> m_sole GUARDED_BY(m_mutex);  // an answer that came first, not yet made into text
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
