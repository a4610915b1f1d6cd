#include "mcp/transport/http/access.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using namespace dockbridge::mcp::http;

namespace {

const std::string k_access_secret = "0123456789abcdef0123456789abcdef";
constexpr Clock::time_point k_start{std::chrono::hours(1)};

}  // namespace

TEST_CASE("access: without tokens every caller is local") {
  Access access({});
  CHECK(access.open());
  CHECK(access.admit(std::nullopt, "127.0.0.1", k_start)->owner == "local");
}

TEST_CASE("access: wrong tokens from the same address do not block a valid token") {
  Access access({{"alice", k_access_secret}});
  for (int i = 0; i < 1000; ++i) {
    CHECK(access.admit("Bearer wrong-wrong-wrong", "10.0.0.1", k_start).error().status == (i < 10 ? 401 : 429));
    REQUIRE(access.admit("Bearer " + k_access_secret, "10.0.0.1", k_start));
  }
  CHECK(access.admit("Bearer " + k_access_secret, "10.0.0.1", k_start)->owner == "alice");
}

TEST_CASE("access: wrong tokens are throttled by address for a minute") {
  Access access({{"alice", k_access_secret}});
  const auto status = [&](const std::string& address, Clock::time_point now) {
    return access.admit("Bearer wrong-wrong-wrong", address, now).error().status;
  };
  for (int i = 0; i < 10; ++i) {
    CHECK(status("10.0.0.1", k_start) == 401);
  }
  CHECK(status("10.0.0.1", k_start) == 429);
  CHECK(access.admit("Bearer wrong", "10.0.0.1", k_start).error().retry_after == seconds(60));
  CHECK(status("10.0.0.2", k_start) == 401);
  CHECK(status("10.0.0.1", k_start + seconds(60)) == 429);
  CHECK(status("10.0.0.1", k_start + seconds(61)) == 401);
}

TEST_CASE("access: a request without a bearer token is refused and not counted") {
  Access access({{"alice", k_access_secret}});
  for (int i = 0; i < 20; ++i) {
    for (const std::string& header :
         {std::string("Basic ") + k_access_secret, k_access_secret, std::string("Bearer"), std::string()}) {
      CHECK(access.admit(header, "10.0.0.1", k_start).error().status == 401);
    }
    CHECK(access.admit(std::nullopt, "10.0.0.1", k_start).error().status == 401);
  }
  CHECK(access.admit("Bearer wrong", "10.0.0.1", k_start).error().status == 401);
}

TEST_CASE("access: the scheme is case-insensitive, the secret is not") {
  Access access({{"alice", k_access_secret}});
  CHECK(access.admit("bEARER   " + k_access_secret, "10.0.0.1", k_start));
  CHECK_FALSE(access.admit("Bearer " + k_access_secret + "0", "10.0.0.1", k_start));
  CHECK_FALSE(access.admit("Bearer " + k_access_secret.substr(1), "10.0.0.1", k_start));
  CHECK_FALSE(access.admit("Bearer 0123456789ABCDEF0123456789ABCDEF", "10.0.0.1", k_start));
}
