#pragma once

#include <nlohmann/json_fwd.hpp>

#include "agent/session/driver_starts.hpp"
#include "agent/session/event_loop.hpp"
#include "agent/session/file_watches.hpp"
#include "agent/session/file_workers.hpp"
#include "agent/session/grep_list.hpp"
#include "agent/session/host_stream.hpp"
#include "agent/session/input_requests.hpp"
#include "agent/session/keeper_pool.hpp"
#include "agent/session/memory_guard.hpp"
#include "agent/session/output_requests.hpp"
#include "agent/session/process_numbers.hpp"
#include "agent/session/process_starter.hpp"
#include "agent/session/process_table.hpp"
#include "agent/session/pruner.hpp"
#include "agent/session/wait_list.hpp"
#include "agent/session/wait_requests.hpp"
#include "wire/operation.hpp"

namespace dockbridge::agent {

/// Serves one connection from the host. Owns the parts that do the work, runs the event loop, and passes each request
/// to the part that serves its operation. Holds no state that matters: it may die at any moment, and another session
/// takes over. One thread.
class Session {
 public:
  Session(StateDirectory state, wire::Retention retention);
  /// Returns when the stream ends, breaks the protocol, or has been silent for too long.
  int run();

 private:
  [[nodiscard]] nlohmann::json greeting() const;
  void handle(HostRequest received);
  /// Runs an operation that the session serves itself.
  Result<void> serve(std::uint64_t request, wire::Operation operation, const wire::Field& head, std::string_view body);
  void cancel(std::uint64_t request);
  void start_warm_interpreters(Clock::time_point now);
  [[nodiscard]] milliseconds next_timeout(Clock::time_point now) const;

  StateDirectory m_state;
  const std::string m_shell;
  EventLoop m_loop;
  HostStream m_stream;
  FileWorkers m_files;
  FileWatches m_watches;
  GrepList m_greps;
  Pruner m_pruner;
  ProcessNumbers m_numbers;
  WaitList m_waits;
  KeeperPool m_keepers;
  ProcessTable m_processes;
  DriverStarts m_drivers;
  MemoryGuard m_memory;
  WaitRequests m_wait_requests;
  ProcessStarter m_starter;
  InputRequests m_input_requests;
  OutputRequests m_output_requests;
};

}  // namespace dockbridge::agent
