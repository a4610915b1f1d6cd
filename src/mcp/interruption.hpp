#pragma once

#include <atomic>
#include <stop_token>

namespace dockbridge::mcp {

/// Reason why a call should stop waiting.
enum class StopReason {
  none,
  cancelled,  ///< the client cancelled: end the work that the call started
  timed_out,  ///< the client's own timeout has passed: leave the work running; the reply is not read
  detached,   ///< the client or this server is going away: leave the work running and return at once
};

/// Whether the protocol forbids a reply: the client has cancelled its request.
constexpr bool forbids_reply(StopReason reason) {
  return reason == StopReason::cancelled || reason == StopReason::timed_out;
}

/// Asks one call to stop, with a reason. Only the first reason counts. Any thread may call.
class Interruption {
 public:
  void interrupt(StopReason reason) {
    StopReason none = StopReason::none;
    if (m_reason.compare_exchange_strong(none, reason)) {
      m_source.request_stop();
    }
  }
  [[nodiscard]] StopReason reason() const { return m_reason.load(); }
  [[nodiscard]] std::stop_token token() const { return m_source.get_token(); }

 private:
  std::atomic<StopReason> m_reason{StopReason::none};
  std::stop_source m_source;
};

}  // namespace dockbridge::mcp
