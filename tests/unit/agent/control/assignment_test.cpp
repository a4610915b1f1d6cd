#include "agent/control/assignment.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <string>

#include "agent/control/packets.hpp"

using namespace dockbridge;
using agent::Assignment;
using agent::receive_assignment;
using agent::Received;
using agent::send_assignment;

namespace {

struct Link {
  Link() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    session.reset(ends[0]);
    keeper.reset(ends[1]);
  }
  Fd session;
  Fd keeper;
};

Assignment assignment(std::string command) {
  Assignment order;
  order.process = "proc_1_a";
  order.child.argv = {"/bin/sh", "-c", std::move(command)};
  order.child.environment = {"A=1", "EMPTY=", std::string("LINES=x\ny")};
  order.child.cwd = "/app";
  order.max_runtime = milliseconds(1234);
  order.journal.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  return order;
}

Assignment received(const Link& link) {
  Result<Assignment> order;
  REQUIRE(receive_assignment(link.keeper.get(), order) == Received::packet);
  REQUIRE(order);
  return std::move(*order);
}

bool same_file(int a, int b) {
  struct stat left {};
  struct stat right {};
  return ::fstat(a, &left) == 0 && ::fstat(b, &right) == 0 && left.st_ino == right.st_ino &&
         left.st_dev == right.st_dev;
}

}  // namespace

TEST_CASE("assignment: any length is received as it was sent") {
  for (const std::size_t length : {0U, 10U, 100'000U, 3'000'000U}) {
    CAPTURE(length);
    const Link link;
    const Assignment sent = assignment(std::string(length, '#'));
    REQUIRE(send_assignment(link.session.get(), sent));
    const Assignment got = received(link);
    CHECK(got.process == sent.process);
    CHECK(got.child.argv == sent.child.argv);
    CHECK(got.child.environment == sent.child.environment);
    CHECK(got.child.cwd == "/app");
    CHECK_FALSE(got.child.identity);
    CHECK(got.max_runtime == milliseconds(1234));
    CHECK(got.caps.head == sent.caps.head);
    CHECK(got.caps.tail == sent.caps.tail);
    CHECK(same_file(got.journal.get(), sent.journal.get()));
    CHECK_FALSE(got.stdin_file);
  }
}

TEST_CASE("assignment: identity and input file are passed") {
  const Link link;
  Assignment sent = assignment("id");
  sent.child.identity = agent::Identity{1000, 100, {100, 27, 4'000'000'000}};
  sent.stdin_file.reset(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  REQUIRE(send_assignment(link.session.get(), sent));
  const Assignment got = received(link);
  REQUIRE(got.child.identity);
  CHECK(got.child.identity->uid == 1000);
  CHECK(got.child.identity->gid == 100);
  CHECK(got.child.identity->groups == std::vector<gid_t>{100, 27, 4'000'000'000});
  CHECK(same_file(got.stdin_file.get(), sent.stdin_file.get()));
  CHECK(same_file(got.journal.get(), sent.journal.get()));
}

TEST_CASE("assignment: what a code session needs is passed") {
  const Link link;
  Assignment sent = assignment("python3");
  sent.has_side_channel = true;
  sent.idle_limit = milliseconds(3'600'000);
  sent.greeting = "{}\n";
  sent.child.dies_with_keeper = true;
  REQUIRE(send_assignment(link.session.get(), sent));
  const Assignment got = received(link);
  CHECK(got.has_side_channel);
  CHECK(got.idle_limit == milliseconds(3'600'000));
  CHECK(got.greeting == "{}\n");
  CHECK(got.child.dies_with_keeper);
}

TEST_CASE("assignment: orders for a process that has ended are dropped") {
  const Link link;
  REQUIRE(agent::send_control(link.session.get(), static_cast<std::uint8_t>(agent::Order::query), 0));
  REQUIRE(agent::send_control(link.session.get(), static_cast<std::uint8_t>(agent::Order::input), 1, "late"));
  REQUIRE(send_assignment(link.session.get(), assignment("true")));
  Result<Assignment> order;
  CHECK(receive_assignment(link.keeper.get(), order) == Received::nothing);
  CHECK(receive_assignment(link.keeper.get(), order) == Received::nothing);
  CHECK(received(link).process == "proc_1_a");
  CHECK(receive_assignment(link.keeper.get(), order) == Received::nothing);
}

TEST_CASE("assignment: a cut message is an error") {
  const Link link;
  REQUIRE(agent::send_control(link.session.get(), static_cast<std::uint8_t>(agent::Order::start), 0, "\x05"));
  Result<Assignment> order;
  REQUIRE(receive_assignment(link.keeper.get(), order) == Received::packet);
  REQUIRE_FALSE(order);
  CHECK(order.error().code == ErrorCode::cannot_start);
}

TEST_CASE("assignment: a message without its descriptors is an error") {
  const Link link;
  REQUIRE(agent::send_control(link.session.get(), static_cast<std::uint8_t>(agent::Order::start), 3, "x"));
  Result<Assignment> order;
  REQUIRE(receive_assignment(link.keeper.get(), order) == Received::packet);
  REQUIRE_FALSE(order);
  CHECK(order.error().message.find("descriptors") != std::string::npos);
}

TEST_CASE("control: packets sent before the peer closed are received") {
  Link link;
  REQUIRE(agent::send_control(link.keeper.get(), static_cast<std::uint8_t>(agent::Answer::accepted), 0));
  REQUIRE(send_assignment(link.session.get(), assignment("true")));
  link.session.reset();
  CHECK(received(link).process == "proc_1_a");
  Result<Assignment> order;
  CHECK(receive_assignment(link.keeper.get(), order) == Received::hangup);
}

TEST_CASE("assignment: the end of session and keeper is detected") {
  Link link;
  link.session.reset();
  Result<Assignment> order;
  CHECK(receive_assignment(link.keeper.get(), order) == Received::hangup);
  Link other;
  other.keeper.reset();
  const auto sent = send_assignment(other.session.get(), assignment("true"));
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::keeper_gone);
}
