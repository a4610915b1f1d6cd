// Calls beyond the limit of concurrent calls, with the real program. Its engine accepts connections and stays silent,
// so each call occupies its place for half a minute.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <csignal>

#include "support/field.hpp"
#include "support/http.hpp"
#include "support/http_port.hpp"
#include "support/program.hpp"
#include "support/temporary_directory.hpp"
#include "util/fd.hpp"
#include "util/socket_address.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr int k_max_calls = 512;

class SilentEngine {
 public:
  SilentEngine() {
    const Fd directory(::open(m_directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const sockaddr_un address = socket_address(directory.get(), "engine");
    REQUIRE(::bind(m_socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(m_socket.get(), 100) == 0);
  }
  [[nodiscard]] std::string url() const { return "unix://" + (m_directory / "engine").string(); }

 private:
  const TemporaryDirectory m_directory;
  const Fd m_socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

/// A program whose places are all taken by the client on its stdio.
struct Busy {
  Busy() {
    server.initialize();
    for (int i = 0; i < k_max_calls; ++i) {
      server.start_call("execute_command", {{"command", "true"}});
    }
  }
  /// Sends one more call, and waits until it reports this position.
  int wait_in_queue(int position) {
    const int id = server.start_call("execute_command", {{"command", "true"}}, {{"progressToken", position}});
    const json note = server.receive();
    CHECK(field(note, "params", "progressToken") == position);
    CHECK(field(note, "params", "message") == (position == 1
                                                   ? "waiting for capacity: next to start"
                                                   : fmt::format("waiting for capacity: position {}", position)));
    return id;
  }
  [[nodiscard]] std::string metrics() { return HttpConnection(m_port).request("GET", "/metrics", {}).body; }

  SilentEngine engine;
  Server server{{"--docker-host", engine.url(), "--http", "127.0.0.1:0", "--stdio", "--no-token"}};

 private:
  const int m_port = http_port_of(server);
};

}  // namespace

TEST_CASE("capacity: a call over the limit waits, reports its position, and can be cancelled") {
  Busy busy;
  const int first = busy.wait_in_queue(1);
  busy.wait_in_queue(2);
  CHECK(busy.metrics().find("dockbridge_waiting_calls 2\n") != std::string::npos);
  busy.server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", first}}}});
  const json moved = busy.server.receive();
  CHECK(field(moved, "params", "progressToken") == 2);
  CHECK(field(moved, "params", "message") == "waiting for capacity: next to start");
  CHECK(busy.metrics().find("dockbridge_waiting_calls 1\n") != std::string::npos);
}

TEST_CASE("capacity: after ten seconds a waiting call gets an error with the time to retry") {
  Busy busy;
  const auto began = Clock::now();
  const int id = busy.wait_in_queue(1);
  const json answer = busy.server.receive(seconds(20));
  const auto took = Clock::now() - began;
  CHECK(field(answer, "id") == id);
  CHECK(took >= seconds(10));
  const json result = field(answer, "result");
  CHECK(field(result, "_meta", "dockbridge/result", "error") == "too_many_calls");
  CHECK(field(result, "_meta", "dockbridge/result", "retryAfterSeconds") == 10);
  CHECK(field(result, "content", 0, "text") ==
        "Error: Too many concurrent calls; the wait for capacity timed out\n"
        "The call was not made. Retry after 10 s, and start long commands with background: true");
  CHECK(busy.metrics().find("dockbridge_rejected_calls_total{reason=\"waited too long\"} 1\n") != std::string::npos);
}

TEST_CASE("capacity: a server that stops answers the calls that wait") {
  Busy busy;
  const int id = busy.wait_in_queue(1);
  busy.server.signal(SIGTERM);
  const json answer = busy.server.receive_answer(id, seconds(5));
  CHECK(field(answer, "result", "_meta", "dockbridge/result", "error") == "server_stopping");
  const int status = busy.server.wait_for_exit();
  CHECK(WIFEXITED(status));
}
