#include "mcp/transport/http/loopback.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

namespace dockbridge::mcp::http {

bool is_loopback(const std::string& address) {
  constexpr unsigned char k_loopback_network = 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.c_str(), &six) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == k_loopback_network);
  }
  in_addr four{};
  return ::inet_pton(AF_INET, address.c_str(), &four) == 1 && ntohl(four.s_addr) >> 24 == k_loopback_network;
}

}  // namespace dockbridge::mcp::http
