#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "error/error.hpp"
#include "mcp/metrics.hpp"
#include "mcp/transport/http/connection_table.hpp"
#include "mcp/transport/http/exchange.hpp"
#include "mcp/transport/http/socket.hpp"
#include "util/log.hpp"
#include "util/mutex.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::mcp::http {

struct Endpoint {
  std::string host = "127.0.0.1";
  std::string port;  ///< "0" means any free port
};

/// Accepts connections and serves each on its own thread, up to limits. At a limit, a connection that waits for a
/// request is evicted. If all connections are serving a request, a new one is refused with 503.
class Listener {
 public:
  /// Called about once a second by the thread that accepts.
  using Tick = std::function<void()>;

  Listener(Limits limits, std::optional<TlsContext> tls, Handler handler, Metrics& metrics, Log& log);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Returns when connections are accepted.
  Result<void> start(const Endpoint& endpoint, Tick tick);
  [[nodiscard]] int port() const { return m_port; }
  /// Accepts no more connections and closes idle ones. A connection that serves a request ends after its response.
  void stop();
  /// False if connections are still open at the deadline.
  bool wait_for_connections(Deadline deadline) { return m_threads.wait_until_idle(deadline); }

 private:
  void accept_loop(const Tick& tick);
  void take(Fd fd, std::string peer);
  void serve(Socket& socket, ConnectionTable::Id id);
  void close_waiting(ConnectionTable::Id id) REQUIRES(m_mutex);

  const Limits m_limits;
  const std::optional<TlsContext> m_tls;
  const Handler m_handler;
  Metrics& m_metrics;
  Log& m_log;
  Fd m_socket;
  Wakeup m_wakeup;  // for the thread that accepts
  int m_port = 0;
  std::atomic<bool> m_stopping{false};
  Mutex m_mutex;
  ConnectionTable m_table GUARDED_BY(m_mutex);
  std::map<ConnectionTable::Id, Socket*> m_open GUARDED_BY(m_mutex);
  WorkerPool m_threads;
  std::thread m_acceptor;
};

}  // namespace dockbridge::mcp::http
