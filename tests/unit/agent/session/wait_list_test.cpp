#include "agent/session/wait_list.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <vector>

#include "support/field.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::Order;
using agent::Process;
using agent::StatePacket;
using agent::Wait;
using nlohmann::json;
using test::field;
using wire::Phase;

namespace {

const Clock::time_point k_list_start{std::chrono::hours(1)};

class SentReplies : public agent::Replies {
 public:
  [[nodiscard]] const std::vector<json>& heads() const { return m_heads; }
  void forward(std::string_view /*frame*/) override { FAIL("not used"); }

 private:
  void send_frame(const json& head, std::string_view /*body*/) override { m_heads.push_back(head); }
  std::vector<json> m_heads;
};

/// A process and the keeper's end of its link.
struct KeptProcess {
  Process process;
  Fd keeper;

  explicit KeptProcess(std::string id) {
    std::array<int, 2> sockets{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets.data()) == 0);
    process.id = std::move(id);
    process.link.emplace(Fd(sockets[0]));
    keeper.reset(sockets[1]);
  }
  void report(Phase phase) {
    process.last.emplace();
    process.last->phase = static_cast<std::uint8_t>(phase);
  }
  /// The next order with its value; `none` if there is none.
  [[nodiscard]] std::pair<Order, std::uint32_t> next_order() const {
    agent::ControlPacket packet;
    return agent::receive_control(keeper.get(), packet) == agent::Received::packet
               ? std::pair(static_cast<Order>(packet.header.type), packet.header.value)
               : std::pair(Order::none, 0U);
  }
};

struct World {
  test::TemporaryDirectory directory;
  agent::StateDirectory state = *agent::StateDirectory::open(directory.path().string());
  SentReplies replies;
  agent::WaitList waits{state, replies};
  KeptProcess kept{"proc_1_a"};

  void add(std::uint64_t request, Process& process, const wire::WaitCondition& until = {}) {
    auto wait = Wait::make({seconds(10), 0, until}, k_list_start);
    REQUIRE(wait);
    waits.add(request, std::move(*wait), process, k_list_start);
  }
};

}  // namespace

TEST_CASE("wait list: the keeper is queried, and its report ends the wait") {
  World w;
  w.add(7, w.kept.process);
  CHECK(w.kept.next_order() == std::pair(Order::query, 0U));
  w.kept.report(Phase::running);
  w.waits.on_change(w.kept.process, k_list_start);
  CHECK(w.replies.heads().empty());
  CHECK(w.waits.is_awaited(w.kept.process));
  w.kept.report(Phase::exited);
  w.waits.on_change(w.kept.process, k_list_start);
  REQUIRE(w.replies.heads().size() == 1);
  CHECK(field(w.replies.heads()[0], "id") == 7);
  CHECK(field(w.replies.heads()[0], "happened") == "ended");
  CHECK_FALSE(w.waits.has(7));
  CHECK_FALSE(w.waits.is_awaited(w.kept.process));
}

TEST_CASE("wait list: the first of several processes ends the request") {
  World w;
  KeptProcess other{"proc_1_b"};
  w.add(7, w.kept.process);
  w.add(7, other.process);
  other.report(Phase::closed);
  w.waits.on_change(other.process, k_list_start);
  REQUIRE(w.replies.heads().size() == 1);
  CHECK(field(w.replies.heads()[0], "process", "id") == "proc_1_b");
  CHECK_FALSE(w.waits.is_awaited(w.kept.process));
  w.kept.report(Phase::closed);
  w.waits.on_change(w.kept.process, k_list_start);
  CHECK(w.replies.heads().size() == 1);
}

TEST_CASE("wait list: a keeper that does not report delays the reply by one second") {
  World w;
  w.add(7, w.kept.process);
  CHECK(w.kept.next_order().first == Order::query);
  w.kept.report(Phase::running);
  w.waits.check(k_list_start + seconds(10));
  CHECK(w.kept.next_order().first == Order::query);
  CHECK(w.replies.heads().empty());
  CHECK(w.waits.next_check(k_list_start) == k_list_start + seconds(11));
  w.waits.check(k_list_start + seconds(11));
  REQUIRE(w.replies.heads().size() == 1);
  CHECK(field(w.replies.heads()[0], "happened") == "nothing");
  CHECK_FALSE(w.waits.next_check(k_list_start));
}

TEST_CASE("wait list: the keeper watches for what the waits need") {
  World w;
  w.kept.report(Phase::running);
  w.add(7, w.kept.process, {.known = {{0, 0}}, .input = true});
  w.add(8, w.kept.process, {.idle = seconds(1), .longest_idle = seconds(5)});
  CHECK(w.kept.next_order() == std::pair(Order::query, 0U));
  CHECK(w.kept.next_order() == std::pair(Order::query, agent::k_with_starvation));
  w.waits.on_change(w.kept.process, k_list_start);
  CHECK(w.kept.next_order().first == Order::watch_growth);
  CHECK(w.kept.next_order() == std::pair(Order::watch_input, agent::k_watch_input));
  w.waits.cancel(7);
  w.waits.on_change(w.kept.process, k_list_start);
  CHECK(w.kept.next_order() == std::pair(Order::watch_input, 0U));
  CHECK(w.kept.next_order().first == Order::none);
  CHECK(w.replies.heads().empty());
}

TEST_CASE("wait list: a failed start is the reply to every wait for it") {
  World w;
  auto wait = Wait::make({seconds(10), 0, {}}, k_list_start);
  REQUIRE(wait);
  w.waits.add_started(7, std::move(*wait), w.kept.process);
  w.add(8, w.kept.process);
  w.waits.on_start_failed(w.kept.process, {ErrorCode::cannot_start, "No such file or directory"});
  REQUIRE(w.replies.heads().size() == 2);
  CHECK(field(w.replies.heads()[0], "error", "code") == "cannot_start");
  CHECK(field(w.replies.heads()[1], "id") == 8);
  CHECK_FALSE(w.waits.is_awaited(w.kept.process));
}

TEST_CASE("wait list: without a keeper the reply is sent at once") {
  World w;
  w.kept.process.link.reset();
  w.kept.report(Phase::closed);
  w.add(7, w.kept.process);
  REQUIRE(w.replies.heads().size() == 1);
  CHECK(field(w.replies.heads()[0], "happened") == "ended");
}
