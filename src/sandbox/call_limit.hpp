#pragma once

#include <optional>
#include <stop_token>
#include <utility>

#include "util/clock.hpp"

namespace dockbridge::sandbox {

/// Bounds a call as a whole, over all requests that it makes of the agent: one deadline, counted from the call's start,
/// and the caller's stop token. An agent that answers each request in time cannot keep the call going beyond it. A stop
/// token by itself is a limit without a deadline, for what is bounded otherwise.
class CallLimit {
 public:
  CallLimit() = default;
  CallLimit(std::stop_token stop) : m_stop(std::move(stop)) {}  // NOLINT(google-explicit-constructor)
  CallLimit(std::stop_token stop, Deadline deadline) : m_stop(std::move(stop)), m_deadline(deadline) {}

  [[nodiscard]] const std::stop_token& stop() const { return m_stop; }
  /// The end of `patience`, or of the call if that comes first.
  [[nodiscard]] Deadline deadline_within(milliseconds patience) const {
    return m_deadline ? m_deadline->capped(patience) : Deadline::after(patience);
  }
  /// The same call with less time.
  [[nodiscard]] CallLimit capped(milliseconds patience) const { return {m_stop, deadline_within(patience)}; }
  /// The same time for what has to be done although the call was stopped.
  [[nodiscard]] CallLimit without_stop() const { return m_deadline ? CallLimit({}, *m_deadline) : CallLimit(); }
  [[nodiscard]] bool is_over() const { return m_stop.stop_requested() || (m_deadline && m_deadline->passed()); }

 private:
  std::stop_token m_stop;
  std::optional<Deadline> m_deadline;
};

}  // namespace dockbridge::sandbox
