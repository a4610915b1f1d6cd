#pragma once

#include <optional>
#include <stop_token>
#include <utility>

#include "util/clock.hpp"

namespace dockbridge::sandbox {

/// Whether a request may connect to the container, and so start it.
enum class Connect { if_needed, never };

/// Limits a call as a whole, across all its requests to the agent: one deadline, counted from the call's start, and the
/// caller's stop token. An agent that answers each request in time cannot extend the call. A stop token alone is a
/// limit without a deadline, for work that is bounded in another way.
class CallLimit {
 public:
  CallLimit() = default;
  CallLimit(std::stop_token stop) : m_stop(std::move(stop)) {}  // NOLINT(google-explicit-constructor)
  CallLimit(std::stop_token stop, Deadline deadline) : m_stop(std::move(stop)), m_deadline(deadline) {}

  [[nodiscard]] const std::stop_token& stop() const { return m_stop; }
  /// The end of `patience` or of the call, whichever is earlier.
  [[nodiscard]] Deadline deadline_within(milliseconds patience) const {
    return m_deadline ? m_deadline->capped(patience) : Deadline::after(patience);
  }
  /// The same call with less time.
  [[nodiscard]] CallLimit capped(milliseconds patience) const { return {m_stop, deadline_within(patience)}; }
  /// The same deadline without the stop token, for work that must be done even after the call was stopped.
  [[nodiscard]] CallLimit without_stop() const { return m_deadline ? CallLimit({}, *m_deadline) : CallLimit(); }
  [[nodiscard]] bool is_over() const { return m_stop.stop_requested() || (m_deadline && m_deadline->passed()); }

 private:
  std::stop_token m_stop;
  std::optional<Deadline> m_deadline;
};

}  // namespace dockbridge::sandbox
