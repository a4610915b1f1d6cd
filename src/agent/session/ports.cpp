#include "agent/session/ports.hpp"

#include <cstdio>
#include <fstream>
#include <string>

namespace dockbridge::agent {

bool is_port_open(std::uint16_t port) {
  constexpr unsigned k_listens = 0x0A;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      unsigned local = 0;
      unsigned state = 0;
      // "  0: 0100007F:1F90 00000000:0000 0A ..."
      const bool parsed = std::sscanf(line.c_str(), " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2;
      if (parsed && local == port && state == k_listens) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace dockbridge::agent
