#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "util/fd.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A local TCP port. The tests expect no connection to it.
class Listener {
 public:
  Listener() : m_socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(m_socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(m_socket.get(), 4) == 0);
    REQUIRE(::getsockname(m_socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    m_port = ntohs(address.sin_port);
  }
  [[nodiscard]] std::string url() const { return fmt::format("tcp://127.0.0.1:{}", m_port); }
  [[nodiscard]] bool has_visitor() const {
    pollfd polled{m_socket.get(), POLLIN, 0};
    return ::poll(&polled, 1, 0) > 0;
  }

 private:
  Fd m_socket;
  int m_port = 0;
};

}  // namespace

TEST_CASE("engine address: no plain text connection is made if TLS is configured") {
  for (const char* variable : {"DOCKER_TLS_VERIFY", "DOCKER_TLS", "DOCKER_CERT_PATH"}) {
    for (const bool by_option : {true, false}) {
      CAPTURE(variable);
      CAPTURE(by_option);
      const Listener engine;
      Server server(by_option ? std::vector<std::string>{"--docker-host", engine.url()} : std::vector<std::string>{},
                    {{variable, "1"}, {"DOCKER_HOST", by_option ? "" : engine.url()}});
      server.initialize();
      const json error = error_of(server.execute("true"));
      CHECK(field(error, "code") == "unsupported_docker_host");
      CHECK(field(error, "message").get<std::string>().find(variable) != std::string::npos);
      CHECK(field(error, "nextStep").get<std::string>().find("--via exec") != std::string::npos);
      CHECK_FALSE(engine.has_visitor());
    }
  }
}

TEST_CASE("engine address: with --via exec the docker command handles TLS") {
  Server server({"--docker-host", "tcp://127.0.0.1:1", "--via", "exec", "--docker-command", "/bin/false"},
                {{"DOCKER_TLS_VERIFY", "1"}});
  server.initialize();
  CHECK(field(fields_of(server.execute("true")), "error", "code") == "engine_error");  // not unsupported_docker_host
}
