#pragma once

#include <string>

#include "util/fd.hpp"

namespace dockbridge::bench {

/// A free port of this machine.
int free_port();

/// One connection to a dockbridge on this machine that is kept alive. Throws if the server does not answer with 200.
class HttpClient {
 public:
  /// Waits a little until a server listens.
  explicit HttpClient(int port);
  /// POSTs a request of the stateless revision; returns the answer's body, the last event if it is a stream.
  std::string post(const std::string& method, const std::string& name, const std::string& body);

 private:
  std::string take_until(const std::string& end);
  std::string take(std::size_t count);
  void fill();

  Fd m_fd;
  std::string m_buffer;
};

}  // namespace dockbridge::bench
