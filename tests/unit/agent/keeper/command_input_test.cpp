#include "agent/keeper/command_input.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <utility>

#include "agent/control/packets.hpp"
#include "agent/keeper/links.hpp"

using namespace dockbridge;
using agent::k_max_pending_input;

namespace {

const Clock::time_point k_input_time{};

/// The input of a command through a pipe, which the test reads.
class Piped {
 public:
  Piped() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    m_read_end.reset(ends[0]);
    input.open(Fd(ends[1]), nullptr);
  }
  /// Reads up to the end of the input, or until the pipe is empty.
  std::string read_all() {
    std::string all;
    std::array<char, 64 * 1024> piece{};
    for (ssize_t got = 0; (got = ::read(m_read_end.get(), piece.data(), piece.size())) > 0;) {
      all.append(piece.data(), static_cast<std::size_t>(got));
      if (input.fd_to_write() >= 0) {
        input.write_queue();
      }
    }
    return all;
  }
  void close_read_end() { m_read_end.reset(); }

 private:
  agent::Links m_links;
  agent::ActivityMonitor m_activity{m_links};
  Fd m_read_end;

 public:
  agent::CommandInput input{m_activity};
};

}  // namespace

TEST_CASE("command input: the queue is bounded, and nothing of it is lost") {
  Piped piped;
  const std::string bytes(2 * k_max_pending_input, 'x');
  const auto first = piped.input.write(bytes, agent::k_then_end, k_input_time);
  CHECK(first.count == k_max_pending_input);
  CHECK_FALSE(first.then_end);  // not all of it was accepted
  CHECK(piped.input.is_open());
  CHECK(piped.input.has_unread());
  const auto second = piped.input.write(std::string_view(bytes).substr(first.count), 0, k_input_time);
  CHECK(second.count < k_max_pending_input);
  CHECK(piped.input.write("x", 0, k_input_time).count == 0);
  CHECK(piped.read_all().size() == first.count + second.count);
  CHECK_FALSE(piped.input.has_unread());
  CHECK(piped.input.room() == k_max_pending_input);
}

TEST_CASE("command input: the pipe is closed behind the queue") {
  Piped piped;
  const std::string bytes(k_max_pending_input, 'x');
  CHECK(piped.input.write(bytes, agent::k_then_end, k_input_time).then_end);
  CHECK_FALSE(piped.input.is_open());
  CHECK(piped.input.fd_to_write() >= 0);
  CHECK(piped.input.write("more", 0, k_input_time).count == 0);
  CHECK(piped.read_all() == bytes);
  CHECK(piped.input.fd_to_write() == -1);
}

TEST_CASE("command input: a reader that has closed its end closes the input") {
  const auto previous = ::signal(SIGPIPE, SIG_IGN);
  Piped piped;
  piped.close_read_end();
  CHECK(piped.input.write("text", 0, k_input_time).count == 4);
  CHECK_FALSE(piped.input.is_open());
  CHECK(piped.input.fd_to_write() == -1);
  ::signal(SIGPIPE, previous);
}

TEST_CASE("command input: keys need a terminal") {
  Piped piped;
  CHECK(piped.input.press("enter", k_input_time) == 0);
  CHECK(agent::count_keys("") == 0);
  CHECK(agent::count_keys("enter ctrl-c up") == 3);
}
