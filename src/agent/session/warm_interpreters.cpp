#include "agent/session/warm_interpreters.hpp"

#include <poll.h>

#include <utility>

namespace dockbridge::agent {

namespace {

bool is_same_driver(const ChildSpec& a, const ChildSpec& b) {
  return a.argv == b.argv && a.environment == b.environment && a.nice == b.nice;
}

/// A keeper without a process sends a packet only when its warm child has ended.
bool has_report(const KeeperLink& link) {
  pollfd polled{link.fd(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace

std::optional<KeeperLink> WarmInterpreters::take(const ChildSpec& driver) {
  while (!m_warm.empty() && is_same_driver(driver, m_driver)) {
    KeeperLink link = std::move(m_warm.back());
    m_warm.pop_back();
    if (!has_report(link)) {
      return link;
    }
    ControlPacket report;
    if (link.receive(report) == Received::packet) {
      m_keepers.give_back(std::move(link));
    }
  }
  return std::nullopt;
}

void WarmInterpreters::keep(const ChildSpec& driver, std::size_t count, std::uint64_t request) {
  if (!is_same_driver(driver, m_driver) || count == 0) {
    m_warm.clear();
    m_driver = driver;
  }
  m_policy.note_start(count);
  m_request = request;
}

void WarmInterpreters::note_reply(Clock::time_point now) {
  m_request.reset();
  m_policy.note_reply(now);
}

void WarmInterpreters::start_if_due(Clock::time_point now) {
  const auto due = next_start();
  if (!due || now < *due) {
    return;
  }
  Assignment assignment;
  assignment.child = m_driver;
  assignment.has_side_channel = true;
  if (auto link = m_keepers.hand_over(assignment)) {
    m_warm.push_back(std::move(*link));
    m_policy.note_launch(now);
  } else {
    m_policy.note_pressure(now);  // no memory, or too many processes
  }
}

void WarmInterpreters::drop_all(Clock::time_point now) {
  m_warm.clear();
  m_policy.note_pressure(now);
}

}  // namespace dockbridge::agent
