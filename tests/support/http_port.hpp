#pragma once

#include <string>

#include "support/program.hpp"

namespace dockbridge::test {

/// The port that a server with --http 127.0.0.1:0 reports in its log.
inline int http_port_of(Server& server) {
  const std::string mark = "url=http://127.0.0.1:";
  int port = 0;
  eventually("it listens", [&] {
    const std::string log = server.log();
    const std::size_t found = log.find(mark);
    port = found == std::string::npos ? 0 : std::stoi(log.substr(found + mark.size()));
    return port != 0;
  });
  return port;
}

}  // namespace dockbridge::test
