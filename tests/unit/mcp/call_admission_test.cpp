#include "mcp/call_admission.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using namespace dockbridge::mcp;

namespace {

using Decision = CallAdmission::Decision;
using Ticket = CallAdmission::Ticket;
constexpr std::size_t k_no_limit = 1000;

/// One admission and its clock.
struct Queue {
  explicit Queue(const CallAdmission::Limits& limits) : admission(limits) {}

  CallAdmission::Arrival arrive(const std::string& owner, std::size_t owner_limit = k_no_limit, std::size_t bytes = 0) {
    return admission.arrive({owner, owner_limit, bytes, true}, now);
  }
  Ticket wait(const std::string& owner, std::size_t owner_limit = k_no_limit) {
    const auto arrival = arrive(owner, owner_limit);
    REQUIRE(arrival.decision == Decision::wait);
    return arrival.ticket;
  }
  void fill(const std::string& owner, int calls) {
    for (int i = 0; i < calls; ++i) {
      REQUIRE(arrive(owner).decision == Decision::run);
    }
  }

  CallAdmission admission;
  Clock::time_point now{};
};

}  // namespace

TEST_CASE("admission: calls run up to the limit, and the next ones wait in order") {
  Queue queue({.calls = 2});
  queue.fill("a", 2);
  const Ticket first = queue.wait("a");
  const Ticket second = queue.wait("a");
  CHECK_FALSE(queue.admission.start_next());
  CHECK(queue.admission.position(first) == 1);
  CHECK(queue.admission.position(second) == 2);
  queue.admission.end("a");
  CHECK(queue.admission.start_next() == first);
  CHECK_FALSE(queue.admission.start_next());
  CHECK(queue.admission.position(second) == 1);
  CHECK(queue.admission.waiting() == 1);
}

TEST_CASE("admission: owners take turns, whoever came first") {
  Queue queue({.calls = 3});
  queue.fill("a", 3);
  const Ticket a1 = queue.wait("a");
  const Ticket a2 = queue.wait("a");
  const Ticket a3 = queue.wait("a");
  const Ticket b1 = queue.wait("b");
  const Ticket b2 = queue.wait("b");
  const Ticket c1 = queue.wait("c");
  const std::vector<Ticket> expected = {a1, b1, c1, a2, b2, a3};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(queue.admission.position(expected[i]) == i + 1);
  }
  std::vector<Ticket> order;
  for (int i = 0; i < 3; ++i) {
    queue.admission.end("a");
    order.push_back(queue.admission.start_next().value());
  }
  for (const char* owner : {"a", "b", "c"}) {
    queue.admission.end(owner);
    order.push_back(queue.admission.start_next().value());
  }
  CHECK(order == expected);
}

TEST_CASE("admission: an owner at its own limit does not hold up others") {
  Queue queue({.calls = 10});
  CHECK(queue.arrive("a", 1).decision == Decision::run);
  const Ticket waiting = queue.wait("a", 1);
  CHECK(queue.arrive("b", 1).decision == Decision::run);
  CHECK_FALSE(queue.admission.start_next());
  queue.admission.end("b");
  CHECK_FALSE(queue.admission.start_next());
  queue.admission.end("a");
  CHECK(queue.admission.start_next() == waiting);
}

TEST_CASE("admission: the queue is bounded in number, for all and for each owner") {
  Queue queue({.calls = 0, .waiting = 3, .waiting_per_owner = 2});
  const Ticket first = queue.wait("a");
  queue.wait("a");
  CHECK(queue.arrive("a").decision == Decision::reject);
  queue.wait("b");
  CHECK(queue.arrive("b").decision == Decision::reject);
  CHECK(queue.arrive("c").decision == Decision::reject);
  queue.admission.leave(first);
  queue.wait("c");
}

TEST_CASE("admission: the queue is bounded in bytes, for all and for each owner") {
  Queue queue({.calls = 0, .waiting_bytes = 150, .waiting_bytes_per_owner = 100});
  CHECK(queue.arrive("a", k_no_limit, 101).decision == Decision::reject);
  const auto large = queue.arrive("a", k_no_limit, 100);
  CHECK(large.decision == Decision::wait);
  CHECK(queue.arrive("a", k_no_limit, 1).decision == Decision::reject);
  CHECK(queue.arrive("b", k_no_limit, 51).decision == Decision::reject);
  CHECK(queue.arrive("b", k_no_limit, 50).decision == Decision::wait);
  queue.admission.leave(large.ticket);
  CHECK(queue.arrive("a", k_no_limit, 100).decision == Decision::wait);
}

TEST_CASE("admission: a call expires after its wait, and the next event says when") {
  Queue queue({.calls = 0, .max_wait = seconds(10), .first_report = milliseconds(100)});
  CHECK_FALSE(queue.admission.next_event());
  const Clock::time_point began = queue.now;
  const auto silent = queue.admission.arrive({"a", k_no_limit, 0, false}, queue.now);
  CHECK(queue.admission.next_event() == began + seconds(10));
  queue.now += seconds(3);
  const Ticket later = queue.wait("a");
  CHECK(queue.admission.next_event() == queue.now + milliseconds(100));
  queue.now = began + milliseconds(9'999);
  CHECK(queue.admission.expired(queue.now).empty());
  queue.now = began + seconds(10);
  CHECK(queue.admission.expired(queue.now) == std::vector<Ticket>{silent.ticket});
  queue.admission.leave(silent.ticket);
  CHECK(queue.admission.expired(queue.now).empty());
  CHECK(queue.admission.position(later) == 1);
}

TEST_CASE("admission: a position is reported when it changes, at most once per interval") {
  Queue queue({.calls = 1, .first_report = milliseconds(100), .report_interval = milliseconds(1000)});
  queue.fill("a", 1);
  queue.wait("a");
  const Ticket second = queue.wait("a");
  CHECK(queue.admission.take_reports(queue.now).empty());
  queue.now += milliseconds(100);
  auto reports = queue.admission.take_reports(queue.now);
  REQUIRE(reports.size() == 2);
  CHECK(reports[1].ticket == second);
  CHECK(reports[1].position == 2);
  queue.admission.end("a");
  CHECK(queue.admission.start_next());
  queue.now += milliseconds(999);
  CHECK(queue.admission.take_reports(queue.now).empty());
  queue.now += milliseconds(1);
  reports = queue.admission.take_reports(queue.now);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].position == 1);
  queue.now += seconds(1);
  CHECK(queue.admission.take_reports(queue.now).empty());
}

TEST_CASE("admission: a held call keeps its place but is left alone") {
  Queue queue({.calls = 1});
  queue.fill("a", 1);
  const Ticket held = queue.wait("a");
  const Ticket other = queue.wait("a");
  queue.admission.hold(held, true);
  queue.admission.end("a");
  CHECK(queue.admission.start_next() == other);
  queue.now += seconds(60);
  CHECK(queue.admission.expired(queue.now).empty());
  CHECK(queue.admission.take_reports(queue.now).empty());
  CHECK_FALSE(queue.admission.next_event());
  queue.admission.hold(held, false);
  CHECK(queue.admission.expired(queue.now) == std::vector<Ticket>{held});
  CHECK(queue.admission.position(held) == 1);
}

TEST_CASE("admission: a rejected call may retry when the oldest one has left") {
  Queue queue({.calls = 0, .waiting = 2, .max_wait = seconds(10)});
  CHECK(queue.admission.retry_after(queue.now) == seconds(1));
  queue.wait("a");
  queue.now += milliseconds(3'200);
  queue.wait("a");
  CHECK(queue.arrive("a").decision == Decision::reject);
  CHECK(queue.admission.retry_after(queue.now) == seconds(7));
}

TEST_CASE("admission: a rejection is remembered for a while") {
  Queue queue({.calls = 0, .waiting = 0, .rejection_memory = seconds(10)});
  CHECK_FALSE(queue.admission.has_rejected_lately(queue.now));
  CHECK(queue.arrive("a").decision == Decision::reject);
  queue.now += milliseconds(9'999);
  CHECK(queue.admission.has_rejected_lately(queue.now));
  queue.now += milliseconds(1);
  CHECK_FALSE(queue.admission.has_rejected_lately(queue.now));
}

TEST_CASE("admission: a flood of one owner delays another by one call only") {
  Queue queue({.calls = 1, .waiting = 300, .waiting_per_owner = 200});
  queue.fill("flood", 1);
  for (int i = 0; i < 200; ++i) {
    queue.wait("flood");
  }
  const Ticket small = queue.wait("small");
  CHECK(queue.admission.position(small) == 2);
  queue.admission.end("flood");
  CHECK(queue.admission.start_next() != small);
  queue.admission.end("flood");
  CHECK(queue.admission.start_next() == small);
}
