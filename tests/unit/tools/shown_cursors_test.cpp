#include "tools/shown_cursors.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <future>
#include <thread>

using namespace dockbridge;
using tools::Cursor;
using tools::ShownCursors;

namespace {

void deliver(ShownCursors& shown, const std::string& client, const std::string& process, Cursor from, Cursor to) {
  shown.when_delivered(client, process, from, to)();
}

}  // namespace

TEST_CASE("shown cursors: each client has a cursor of its own for each process") {
  ShownCursors shown;
  CHECK(shown.known("a", "p1").text() == "0:0");
  deliver(shown, "a", "p1", {}, {10, 3});
  deliver(shown, "a", "p2", {}, {7, 0});
  CHECK(shown.known("a", "p1").text() == "10:3");
  CHECK(shown.known("a", "p2").text() == "7:0");
  CHECK(shown.known("b", "p1").text() == "0:0");
}

TEST_CASE("shown cursors: a reply that was not delivered does not count") {
  ShownCursors shown;
  { const auto dropped = shown.when_delivered("a", "p1", {}, {10, 3}); }
  CHECK(shown.known("a", "p1").text() == "0:0");
}

TEST_CASE("shown cursors: never move back or past output that was not shown") {
  ShownCursors shown;
  deliver(shown, "a", "p1", {0, 0}, {10, 10});
  deliver(shown, "a", "p1", {0, 0}, {5, 5});
  CHECK(shown.known("a", "p1").text() == "10:10");
  deliver(shown, "a", "p1", {20, 10}, {30, 12});
  CHECK(shown.known("a", "p1").text() == "10:12");
  deliver(shown, "a", "p1", {10, 12}, {30, 12});
  CHECK(shown.known("a", "p1").text() == "30:12");
}

TEST_CASE("shown cursors: the part without gaps grows when a gap is read") {
  ShownCursors shown;
  shown.when_delivered("a", "p1", {}, {100, 10}, Cursor{20, 10})();
  CHECK(shown.known("a", "p1").text() == "100:10");
  CHECK(shown.known_whole("a", "p1").text() == "20:10");
  deliver(shown, "a", "p1", {100, 10}, {120, 12});
  CHECK(shown.known_whole("a", "p1").text() == "20:12");
  shown.when_delivered("a", "p1", {20, 12}, {70, 12}, Cursor{70, 12})();
  CHECK(shown.known_whole("a", "p1").text() == "70:12");
  deliver(shown, "a", "p1", {70, 12}, {120, 12});
  CHECK(shown.known_whole("a", "p1").text() == "120:12");
}

TEST_CASE("shown cursors: a call waits for the delivery of the reply before it") {
  ShownCursors shown(10, seconds(20));
  auto sending = shown.when_delivered("a", "p1", {}, {10, 0});
  auto next = std::async(std::launch::async, [&] { return shown.known("a", "p1").text(); });
  CHECK(shown.known("b", "p1").text() == "0:0");  // no other client waits
  sending();
  sending = nullptr;
  CHECK(next.get() == "10:0");

  sending = shown.when_delivered("a", "p1", {10, 0}, {20, 0});
  next = std::async(std::launch::async, [&] { return shown.known("a", "p1").text(); });
  sending = nullptr;  // dropped
  CHECK(next.get() == "10:0");
}

TEST_CASE("shown cursors: a reply that stays undelivered is waited for once") {
  ShownCursors shown(10, milliseconds(300));
  auto stuck = shown.when_delivered("a", "p1", {}, {10, 0});
  const auto began = Clock::now();
  CHECK(shown.known("a", "p1").text() == "0:0");
  CHECK(Clock::now() - began >= milliseconds(300));
  const auto again = Clock::now();
  CHECK(shown.known("a", "p1").text() == "0:0");
  CHECK(Clock::now() - again < milliseconds(300));
  stuck();  // delivered late to a client that resumed
  stuck = nullptr;
  CHECK(shown.known("a", "p1").text() == "10:0");
}

TEST_CASE("shown cursors: the least recently used ones are dropped") {
  ShownCursors shown(3);
  for (const char* process : {"p1", "p2", "p3"}) {
    deliver(shown, "a", process, {}, {1, 1});
  }
  CHECK(shown.known("a", "p1").text() == "1:1");
  auto forgotten = shown.when_delivered("a", "p2", {}, {5, 5});
  deliver(shown, "a", "p4", {}, {1, 1});
  deliver(shown, "a", "p5", {}, {1, 1});
  deliver(shown, "a", "p6", {}, {1, 1});
  CHECK(shown.known("a", "p2").text() == "0:0");
  forgotten();
  CHECK(shown.known("a", "p2").text() == "0:0");
  CHECK(shown.known("a", "p6").text() == "1:1");
}

TEST_CASE("shown cursors: many threads deliver concurrently") {
  ShownCursors shown(50);
  std::function<void()> outlives;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::uint64_t i = 0; i < 500; ++i) {
          const std::string process = fmt::format("p{}", i % 100);
          const Cursor known = shown.known(fmt::format("c{}", thread % 2), process);
          deliver(shown, fmt::format("c{}", thread % 2), process, known, {known.out + 1, known.err});
        }
      });
    }
  }
  {
    ShownCursors gone;
    outlives = gone.when_delivered("a", "p1", {}, {1, 1});
  }
  outlives();
}
