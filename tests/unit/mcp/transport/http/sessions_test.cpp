#include "mcp/transport/http/sessions.hpp"

#include <doctest/doctest.h>

#include "util/log.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;

namespace {

struct SessionTable {
  SessionTable() {
    limits.sessions_per_owner = 2;
    limits.session_idle = seconds(600);
  }

  Log log{-1, LogLevel::off, LogFormat::text};
  const Server server{{"test", "Test", "1", ""}, {}};
  Hub hub{server, log};
  http::Limits limits;
  http::Sessions sessions{hub, limits};
  const Clock::time_point start{};
};

}  // namespace

TEST_CASE("sessions: an idle one expires, counted from its last use") {
  SessionTable table;
  const std::string id = table.sessions.create({"alice"}, table.start)->id();
  CHECK(table.sessions.find(id, "alice", table.start + seconds(500)));
  table.sessions.sweep(table.start + seconds(1100));
  CHECK(table.sessions.count() == 1);
  table.sessions.sweep(table.start + seconds(1100) + milliseconds(1));
  CHECK(table.sessions.count() == 0);
}

TEST_CASE("sessions: one with an open connection does not expire") {
  SessionTable table;
  const auto session = table.sessions.create({"alice"}, table.start);
  ++session->connections;
  table.sessions.sweep(table.start + std::chrono::hours(10));
  CHECK(table.sessions.count() == 1);
}

TEST_CASE("sessions: another owner's session is not found, and stays idle") {
  SessionTable table;
  const std::string id = table.sessions.create({"alice"}, table.start)->id();
  CHECK(!table.sessions.find(id, "bob", table.start + seconds(500)));
  table.sessions.sweep(table.start + seconds(601));
  CHECK(table.sessions.count() == 0);
}

TEST_CASE("sessions: at the limit the session that was idle longest is dropped") {
  SessionTable table;
  const std::string first = table.sessions.create({"alice"}, table.start)->id();
  const std::string second = table.sessions.create({"alice"}, table.start + seconds(1))->id();
  CHECK(!table.sessions.create({"alice"}, table.start + seconds(60)));
  CHECK(table.sessions.create({"bob"}, table.start + seconds(60)));
  CHECK(table.sessions.create({"alice"}, table.start + seconds(62)));
  CHECK(!table.sessions.find(first, "alice", table.start + seconds(62)));
  CHECK(table.sessions.find(second, "alice", table.start + seconds(62)));
}
