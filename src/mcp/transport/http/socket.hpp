#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace dockbridge::mcp::http {

/// A certificate and its key. Shared by all connections.
class TlsContext {
 public:
  static Result<TlsContext> load(const std::string& certificate, const std::string& key);
  [[nodiscard]] ssl_ctx_st* get() const { return m_context.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> m_context;
};

/// An accepted connection, plain or with TLS. One thread uses it, except for `shut_down`.
class Socket {
 public:
  Socket(Fd fd, std::string peer) : m_fd(std::move(fd)), m_peer(std::move(peer)) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Starts TLS. Called before all other functions on a connection with TLS.
  bool shake_hands(const TlsContext& tls, Deadline deadline);
  /// Returns the number of bytes; 0 at the end, -1 after an error or at the deadline.
  ssize_t read(char* into, std::size_t size, Deadline deadline);
  bool write(std::string_view bytes, Deadline deadline);
  [[nodiscard]] int fd() const { return m_fd.get(); }
  /// The peer's address, from the kernel.
  [[nodiscard]] const std::string& peer() const { return m_peer; }
  /// Ends current and later waits on the socket. Any thread may call.
  void shut_down();

 private:
  bool await(short events, Deadline deadline) const;
  bool await_tls(int outcome, Deadline deadline);

  Fd m_fd;
  std::string m_peer;
  ssl_st* m_tls = nullptr;
};

}  // namespace dockbridge::mcp::http
