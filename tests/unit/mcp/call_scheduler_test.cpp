// Calls that wait for capacity, through a conversation.

#include "mcp/call_scheduler.hpp"

#include <doctest/doctest.h>

#include <set>

#include "support/program.hpp"
#include "unit/mcp/client.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::eventually;

namespace {

CallAdmission::Limits one_call() {
  return {.calls = 1, .first_report = milliseconds(0), .report_interval = milliseconds(1)};
}

/// A client whose only place is taken by the call 1.
struct Busy : Client {
  explicit Busy(const CallAdmission::Limits& limits = one_call()) : Client(limits) {
    call(1, "gate");
    gate.wait_for_arrivals(1);
  }
  void expect_waiting(std::size_t calls) {
    eventually("calls wait", [&] { return scheduler().load(Clock::now()).waiting == calls; });
  }
};

json error_of(const json& answer) {
  return field(answer, "result", "structuredContent", "error");
}

}  // namespace

TEST_CASE("scheduler: a waiting call is made when another one ends") {
  Busy client;
  for (const int id : {2, 3}) {
    client.call(id, "echo");
  }
  client.expect_waiting(2);
  client.gate.open();
  for (const int id : {1, 2, 3}) {
    CHECK(field(client.inbox.next(), "id") == id);
  }
  client.expect_nothing_more();
  client.expect_waiting(0);
}

TEST_CASE("scheduler: a waiting call reports its position, and then its own progress") {
  Busy client;
  client.call(2, "echo");
  client.call(3, "progress", {{"steps", 1}}, {{"progressToken", "token"}});
  const json note = client.inbox.next();
  CHECK(field(note, "params", "progressToken") == "token");
  CHECK(field(note, "params", "message") == "waiting for capacity: position 2");
  client.gate.open();
  double last = field(note, "params", "progress");
  std::vector<std::string> messages;
  for (json next = client.inbox.next(); next.value("id", 0) != 3; next = client.inbox.next()) {
    if (next.contains("method")) {
      CHECK(field(next, "params", "progress").get<double>() > last);
      last = field(next, "params", "progress");
      messages.push_back(field(next, "params", "message"));
    }
  }
  REQUIRE_FALSE(messages.empty());
  CHECK(messages.back() == "step");
  client.expect_nothing_more();
}

TEST_CASE("scheduler: a call that waits too long gets an error with the time to retry") {
  CallAdmission::Limits limits = one_call();
  limits.max_wait = milliseconds(20);
  Busy client(limits);
  client.call(2, "echo");
  const json answer = client.inbox.next();
  CHECK(field(answer, "id") == 2);
  CHECK(field(error_of(answer), "code") == "too_many_calls");
  CHECK(field(answer, "result", "_meta", k_meta_result, "retryAfterSeconds") == 1);
  CHECK(text_of(answer).find("Retry after 1 s") != std::string::npos);
  CHECK(client.scheduler().load(Clock::now()).reason() == "calls were rejected for lack of capacity in the last 10 s");
  CHECK(client.metrics().text().find("dockbridge_rejected_calls_total{reason=\"waited too long\"} 1") !=
        std::string::npos);
  client.gate.open();
  CHECK(field(client.inbox.next(), "id") == 1);
  client.expect_nothing_more();
}

TEST_CASE("scheduler: a full queue rejects at once") {
  CallAdmission::Limits limits = one_call();
  limits.waiting = 1;
  Busy client(limits);
  client.call(2, "echo");
  client.expect_waiting(1);
  CHECK(client.scheduler().load(Clock::now()).reason() == "1 call waits for capacity");
  client.call(3, "echo");
  const json answer = client.inbox.next();
  CHECK(field(answer, "id") == 3);
  CHECK(field(error_of(answer), "retryAfterSeconds") == 10);
  client.gate.open();
  CHECK(field(client.inbox.next(), "id") == 1);
  CHECK(field(client.inbox.next(), "id") == 2);
}

TEST_CASE("scheduler: a waiting call can be cancelled and gets no reply") {
  Busy client;
  client.call(2, "echo");
  client.call(3, "echo");
  client.expect_waiting(2);
  client.cancel(2);
  client.expect_waiting(1);
  client.gate.open();
  CHECK(field(client.inbox.next(), "id") == 1);
  CHECK(field(client.inbox.next(), "id") == 3);
  client.expect_nothing_more();
}

TEST_CASE("scheduler: a call cancelled before it could wait gets no reply") {
  for (int i = 0; i < 200; ++i) {
    Busy client;
    client.call(2, "echo", json::object(), {{"progressToken", "token"}});
    client.cancel(2);
    client.expect_waiting(0);
    client.gate.open();
    json answer = client.inbox.next();
    if (answer.contains("method")) {
      answer = client.inbox.next();
    }
    CHECK(field(answer, "id") == 1);
    client.expect_nothing_more();
  }
}

TEST_CASE("scheduler: a stop answers waiting and later calls") {
  Busy client;
  client.call(2, "echo");
  client.expect_waiting(1);
  client.scheduler().stop();
  json answer = client.inbox.next();
  CHECK(field(answer, "id") == 2);
  CHECK(field(error_of(answer), "code") == "server_stopping");
  client.call(3, "echo");
  answer = client.inbox.next();
  CHECK(field(answer, "id") == 3);
  CHECK(field(error_of(answer), "code") == "server_stopping");
  client.gate.open();
  CHECK(field(client.inbox.next(), "id") == 1);
}

TEST_CASE("scheduler: detached calls that wait are answered") {
  Busy client;
  client.call(2, "echo");
  client.expect_waiting(1);
  client.conversation().detach_calls();
  // The second one is refused, or made if it got the place of the first one before it was interrupted.
  std::set<int> answered;
  for (int i = 0; i < 2; ++i) {
    answered.insert(field(client.inbox.next(), "id").get<int>());
  }
  CHECK(answered == std::set{1, 2});
  client.expect_nothing_more();
}

TEST_CASE("scheduler: thousands of calls are each answered once") {
  Client client({.calls = 3,
                 .waiting = 5000,
                 .waiting_per_owner = 5000,
                 .first_report = milliseconds(0),
                 .report_interval = milliseconds(1)});
  constexpr int k_calls = 3000;
  for (int i = 0; i < k_calls; ++i) {
    client.call(i, "echo", json::object(), i % 5 == 0 ? json{{"progressToken", i}} : json(nullptr));
  }
  std::set<int> answered;
  while (answered.size() < k_calls) {
    const json message = client.inbox.next();
    if (message.contains("id")) {
      CHECK_FALSE(field(message, "result").value("isError", false));
      CHECK(answered.insert(field(message, "id").get<int>()).second);
    } else {
      CHECK_FALSE(answered.contains(field(message, "params", "progressToken").get<int>()));
    }
  }
  client.expect_nothing_more();
}
