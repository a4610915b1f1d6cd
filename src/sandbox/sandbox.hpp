#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "sandbox/agent_link.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/code_sessions.hpp"
#include "sandbox/files.hpp"
#include "sandbox/process_control.hpp"
#include "sandbox/processes.hpp"
#include "util/clock.hpp"
#include "util/log.hpp"
#include "wire/retention.hpp"

namespace dockbridge::sandbox {

/// The host's view of one container: its agent, processes and files. Connects when it is first used. Any thread may
/// call; calls run concurrently.
class Sandbox {
 public:
  struct Settings {
    std::string workdir = "/app";
    wire::Retention retention;
    std::string file_root{};               ///< the file tools stay beneath it; empty: no limit
    std::string trusted_runs_directory{};  ///< for `TrustedRuns`; empty: none
  };

  Sandbox(Channel& channel, Settings settings, Log& log);

  /// The agent's greeting. Connects if necessary.
  Result<Hello> hello(const std::stop_token& stop = {});
  /// The host directories that the container can write to. Connects if necessary.
  Result<std::vector<std::string>> writable_mounts(const std::stop_token& stop);
  /// The greeting of the current connection; nullopt if there is no connection. Does not connect.
  [[nodiscard]] std::optional<Hello> present_hello();
  /// Number of connections that replaced a lost one.
  [[nodiscard]] std::uint64_t reconnections() { return m_link.reconnections(); }
  /// Number of the current connection; 0 if there is none.
  [[nodiscard]] std::uint64_t connection_number();
  /// Round-trip time of a ping to the agent. Does not connect.
  Result<Clock::duration> round_trip();
  [[nodiscard]] const std::string& workdir() const { return m_settings.workdir; }
  [[nodiscard]] std::string container_name() const { return m_link.container_name(); }

  [[nodiscard]] AgentLink& link() { return m_link; }
  [[nodiscard]] Files& files() { return m_files; }
  [[nodiscard]] Processes& processes() { return m_processes; }
  [[nodiscard]] ProcessControl& control() { return m_control; }
  [[nodiscard]] CodeSessions& sessions() { return m_sessions; }

 private:
  Settings m_settings;
  AgentLink m_link;
  Files m_files;
  Processes m_processes;
  ProcessControl m_control;
  CodeSessions m_sessions{m_processes, m_control};
};

}  // namespace dockbridge::sandbox
