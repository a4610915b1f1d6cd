// Sends arbitrary bytes on a connection. The HTTP front answers or closes it, and keeps running.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "mcp/transport/http/connection.hpp"
#include "mcp/transport/http/front.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;

namespace {

/// One front for all inputs, so that sessions of earlier inputs remain.
struct House {
  Tool echo = [] {
    Tool tool;
    tool.name = "echo";
    tool.input_schema = {{"type", "object"}, {"properties", {{"r", {{"type", "string"}, {"x-mcp-header", "R"}}}}}};
    tool.call = [](const json& arguments, const CallContext&) { return ToolResult{arguments.dump(), nullptr}; };
    return tool;
  }();
  Server server{{"fuzz", "Fuzz", "1", ""}, {{echo}}};
  Log log{-1, LogLevel::off, LogFormat::text};
  Hub hub{server, log};
  CallScheduler scheduler{{.calls = 4}, hub.metrics};
  http::Limits limits = [] {
    http::Limits small;
    small.header_time = small.body_time = small.idle_time = milliseconds(0);
    small.keep_alive = milliseconds(5);
    small.sessions_per_owner = 3;
    return small;
  }();
  http::Access access{{}};
  http::Front front{hub, scheduler, limits, access, http::Origins({}, {}), {}};
  http::Handler handler = [this](http::Request& request) { return front.handle(request); };
  std::atomic<bool> stopping{false};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static House house;
  constexpr std::size_t k_largest = 100'000;  // fits into the socket's buffer
  if (size > k_largest) {
    return 0;
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return 0;
  }
  const Fd client(ends[0]);
  (void)!::write(client.get(), data, size);
  ::shutdown(client.get(), SHUT_WR);
  // Read the answers, because the front waits for a client that does not read.
  const std::jthread reader([&] {
    std::array<char, 4096> answers;
    pollfd polled{client.get(), POLLIN, 0};
    while (::poll(&polled, 1, -1) > 0 && ::read(client.get(), answers.data(), answers.size()) > 0) {
    }
  });
  http::Socket socket(Fd(ends[1]), "127.0.0.1");
  http::Connection(socket, {house.limits, house.handler, house.hub.metrics, house.log, house.stopping}).serve();
  return 0;
}
