#include "mcp/transport/stdio.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "support/field.hpp"
#include "support/program.hpp"
#include "unit/mcp/doubles.hpp"
#include "util/file.hpp"
#include "util/wakeup.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::field;

namespace {

constexpr std::size_t k_longest = 150'000;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    read_end = Fd(ends[0]);
    write_end = Fd(ends[1]);
  }
  Fd read_end;
  Fd write_end;
};

/// A client on the other end of the stdio pipes.
class Served {
 public:
  Served() {
    m_thread = std::thread([this] {
      bool abandoned = false;
      serve_stdio(m_input.read_end.get(), m_output.write_end.get(), m_stop.fd(), m_hub, m_scheduler, k_longest,
                  abandoned);
    });
    send(request_message("init", "initialize", {{"protocolVersion", "2025-03-26"}}));
    REQUIRE(next().contains("result"));
  }
  ~Served() {
    gate.open();
    m_input.write_end.reset();
    m_thread.join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  void send(const json& message) { REQUIRE(write_all(m_input.write_end.get(), message.dump() + "\n")); }
  json next() {
    while (true) {
      if (const std::size_t end = m_received.find('\n'); end != std::string::npos) {
        const std::string line = m_received.substr(0, end);
        m_received.erase(0, end + 1);
        return json::parse(line);
      }
      pollfd polled{m_output.read_end.get(), POLLIN, 0};
      REQUIRE(::poll(&polled, 1, static_cast<int>(milliseconds(k_patience).count())) > 0);
      std::array<char, 65536> bytes{};
      const ssize_t got = ::read(polled.fd, bytes.data(), bytes.size());
      REQUIRE(got > 0);
      m_received.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }

  void stop() { m_stop.wake(); }

  Gate gate;

 private:
  Pipe m_input;
  Pipe m_output;
  Wakeup m_stop;
  Log m_log{-1, LogLevel::off, LogFormat::text};
  Server m_server{{"test", "Test", "1", ""},
                  {{tool("gate",
                         [this](const json&, const CallContext& context) {
                           gate.pass(context);
                           return ToolResult{"through", json::object()};
                         }),
                    tool("echo", [](const json&, const CallContext&) {
                      return ToolResult{"echo", json::object()};
                    })}}};
  Hub m_hub{m_server, m_log};
  CallScheduler m_scheduler{{.calls = 16}, m_hub.metrics};
  std::string m_received;
  std::thread m_thread;
};

json call(const json& id, const std::string& tool, std::size_t bytes = 0) {
  return request_message(id, "tools/call", {{"name", tool}, {"arguments", {{"padding", std::string(bytes, 'x')}}}});
}

bool is_refused(const json& answer) {
  return field(answer, "result").value("isError", false);
}

}  // namespace

TEST_CASE("stdio: the memory of a batch counts until its last call has ended") {
  Served client;
  for (const int i : {1, 2}) {
    client.send(json::array({call(fmt::format("long {}", i), "gate", 140'000), call("short", "echo")}));
    client.gate.wait_for_arrivals(i);
  }
  client.send(call("much", "echo", 140'000));
  CHECK(is_refused(client.next()));
  client.send(call("little", "echo"));
  CHECK_FALSE(is_refused(client.next()));
  client.gate.open();
  for (int i = 0; i < 2; ++i) {
    CHECK(client.next().size() == 2);
  }
  dockbridge::test::eventually("there is room again", [&] {
    client.send(call("much", "echo", 140'000));
    return !is_refused(client.next());
  });
}

TEST_CASE("stdio: a cancellation that arrives after the stop reaches its call") {
  Served client;
  client.send(call("long", "gate"));
  client.gate.wait_for_arrivals(1);
  client.stop();
  client.send(notification_message("notifications/cancelled", {{"requestId", "long"}}));
  CHECK(client.gate.wait_for_end() == StopReason::cancelled);
}

TEST_CASE("stdio: without a cancellation a stop detaches the running calls") {
  Served client;
  client.send(call("long", "gate"));
  client.gate.wait_for_arrivals(1);
  client.stop();
  CHECK(client.gate.wait_for_end() == StopReason::detached);
}

TEST_CASE("stdio: a call that arrives after the stop is refused with the reason") {
  Served client;
  client.send(call("long", "gate"));
  client.gate.wait_for_arrivals(1);
  client.stop();
  client.send(call("late", "echo"));
  const json answer = client.next();
  CAPTURE(answer.dump());
  CHECK(field(answer, "result", "_meta", k_meta_result, "error") == "server_stopping");
}
