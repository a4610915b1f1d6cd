#pragma once

#include <optional>
#include <string>

#include "mcp/peer.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// Agreements with one client of a handshake revision. Any thread may call.
class Handshake {
 public:
  /// `log_from`: severity from which log messages are sent before the client chooses one; nullopt means none are.
  explicit Handshake(std::optional<LogSeverity> log_from) : m_log_from(log_from) {}

  /// nullopt before the handshake.
  [[nodiscard]] std::optional<Revision> negotiated() const {
    const MutexLock lock(m_mutex);
    return m_negotiated;
  }
  /// The client as agreed; before the handshake, one of the newest revision.
  [[nodiscard]] Peer peer() const {
    const MutexLock lock(m_mutex);
    return {m_negotiated.value_or(k_newest_handshake), m_capabilities, m_log_from, m_client_name};
  }
  /// A parameter that is nullopt keeps its earlier value.
  void agree(Revision revision, std::optional<json> capabilities, std::optional<std::string> client_name) {
    const MutexLock lock(m_mutex);
    m_negotiated = revision;
    if (capabilities) {
      m_capabilities = std::move(*capabilities);
    }
    if (client_name) {
      m_client_name = std::move(*client_name);
    }
  }
  void set_log_from(LogSeverity severity) {
    const MutexLock lock(m_mutex);
    m_log_from = severity;
  }

 private:
  mutable Mutex m_mutex;
  std::optional<Revision> m_negotiated GUARDED_BY(m_mutex);
  json m_capabilities GUARDED_BY(m_mutex) = json::object();
  std::string m_client_name GUARDED_BY(m_mutex);
  std::optional<LogSeverity> m_log_from GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp
