#include "mcp/transport/http/loopback.hpp"

#include <doctest/doctest.h>

using dockbridge::mcp::http::is_loopback;

TEST_CASE("loopback: addresses of 127.0.0.0/8 and ::1, also mapped into IPv6") {
  for (const char* address : {"127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"}) {
    CAPTURE(address);
    CHECK(is_loopback(address));
  }
}

TEST_CASE("loopback: other addresses and names are not, whatever they begin with") {
  for (const char* address :
       {"", "localhost", "127.example.com", "127.0.0.1.example.com", "127.", "127.0.0.1:80", "0.0.0.0",
        "::", "10.127.0.1", "::ffff:10.0.0.1", "::ffff:127.evil", "[::1]", "fe80::1"}) {
    CAPTURE(address);
    CHECK(!is_loopback(address));
  }
}
