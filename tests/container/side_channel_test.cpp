#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cli/bridge.hpp"
#include "support/container.hpp"
#include "support/repeated.hpp"
#include "wire/side_channel.hpp"

using namespace dockbridge;
using sandbox::Snapshot;
using test::Container;

namespace {

constexpr seconds k_patience{20};

cli::Options options_for(const Container& container) {
  cli::Options options;
  options.container.name = container.name();
  return options;
}

/// A host with its own session in the container.
struct Host {
  explicit Host(const Container& container) : bridge(options_for(container), log) {}

  Snapshot start(const std::string& id, const std::string& command, const wire::WaitCondition& until) {
    sandbox::StartRequest request;
    request.id = id;
    request.command = command;
    request.cwd = "/app";
    request.owner = "local";
    request.rationale = "a test";
    request.has_side_channel = true;
    const auto started = bridge.sandbox().processes().start(request, k_patience, until, {});
    REQUIRE(started);
    return *started;
  }
  std::string new_id() {
    const auto id = bridge.sandbox().processes().new_process_id();
    REQUIRE(id);
    return *id;
  }
  Snapshot wait(const std::string& id, const wire::WaitCondition& until) {
    const auto waited = bridge.sandbox().processes().wait(id, k_patience, until, {});
    REQUIRE(waited);
    return *waited;
  }
  /// The stored stream `side`.
  std::string read(const std::string& id) {
    std::string all;
    while (true) {
      const auto slice = bridge.sandbox().processes().read(id, sandbox::Stream::side, all.size(), 256UL * 1024, {});
      REQUIRE(slice);
      if (slice->bytes.empty()) {
        return all;
      }
      all += slice->bytes;
    }
  }
  Result<sandbox::Taken> send(const std::string& id, std::string_view bytes, std::optional<wire::Once> once = {}) {
    return bridge.sandbox().control().send_side(id, bytes, std::move(once));
  }

  Log log{2, LogLevel::off, LogFormat::text};
  cli::Bridge bridge;
};

struct Piece {
  std::uint64_t out;
  std::uint64_t err;
  std::string bytes;
};

std::vector<Piece> pieces_of(std::string_view stream) {
  std::vector<Piece> pieces;
  while (!stream.empty()) {
    const auto piece = wire::take_side_piece(stream);
    REQUIRE(piece);
    REQUIRE_FALSE(piece->bytes.empty());
    pieces.push_back({piece->out, piece->err, std::string(piece->bytes)});
  }
  return pieces;
}

wire::WaitCondition more_than(std::uint64_t known_side) {
  return {.known_side = known_side};
}

}  // namespace

TEST_CASE("side channel: each piece states the output that was written before it") {
  const Container container;
  Host host(container);
  const std::string id = host.new_id();
  Snapshot now = host.start(
      id, "printf out; printf er >&2; printf one >&3; read x <&3; printf more; printf two >&3; read x <&3; echo $x",
      more_than(0));
  CHECK(now.happened == wire::WaitOutcome::side);
  REQUIRE(host.send(id, "go\n"));
  now = host.wait(id, more_than(now.state.side.total));
  CHECK(now.happened == wire::WaitOutcome::side);
  const auto pieces = pieces_of(host.read(id));
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].bytes == "one");
  CHECK(pieces[0].out == 3);
  CHECK(pieces[0].err == 2);
  CHECK(pieces[1].bytes == "two");
  CHECK(pieces[1].out == 7);
  CHECK(pieces[1].err == 2);
  // Another host sees the same, and can continue.
  Host other(container);
  CHECK(other.read(id) == host.read(id));
  REQUIRE(other.send(id, "bye\n"));
  const Snapshot ended = other.wait(id, {});
  CHECK(ended.happened == wire::WaitOutcome::ended);
  CHECK(ended.state.out.total == 11);
  CHECK(ended.state.side.total == now.state.side.total);
  CHECK(pieces_of(other.read(id)).size() == 2);
}

TEST_CASE("side channel: what a command writes right before its end is kept") {
  const Container container;
  Host host(container);
  const std::string id = host.new_id();
  const Snapshot ended = host.start(id, "echo x; head -c 100000 /dev/zero >&3", {});
  CHECK(ended.happened == wire::WaitOutcome::ended);
  std::size_t bytes = 0;
  for (const Piece& piece : pieces_of(host.read(id))) {
    bytes += piece.bytes.size();
    CHECK(piece.out == 2);
  }
  CHECK(bytes == 100'000);
}

TEST_CASE("side channel: a megabyte arrives whole, and what is not read is bounded") {
  const Container container;
  Host host(container);
  const std::string id = host.new_id();
  host.start(id, "head -c 1000000 <&3 | md5sum; printf done >&3; sleep 60", {.idle = milliseconds(100)});
  const std::string megabyte = test::repeated("0123456789", 100'000);
  const auto sent = host.send(id, megabyte);
  REQUIRE(sent);
  CHECK(sent->count == megabyte.size());
  const Snapshot now = host.wait(id, more_than(0));
  CHECK(now.state.out.total == 36);
  CHECK(pieces_of(host.read(id)).back().bytes == "done");
  std::size_t accepted = 0;
  for (int i = 0; i < 4; ++i) {
    const auto more = host.send(id, megabyte);
    REQUIRE(more);
    accepted += more->count;
  }
  CHECK(accepted < 2 * megabyte.size());
}

TEST_CASE("side channel: with an idempotency key, a message is taken once") {
  const Container container;
  Host host(container);
  const std::string id = host.new_id();
  host.start(id, "read x <&3; echo $x >&3; read x <&3; echo $x >&3", {.idle = milliseconds(50)});
  const wire::Once once{std::string(32, 'a'), std::string(32, 'b'), 0, {}};
  REQUIRE(host.send(id, "first\n", once));
  const auto repeated = host.send(id, "first\n", once);
  REQUIRE(repeated);
  CHECK(repeated->earlier);
  wire::Once other_call = once;
  other_call.call = std::string(32, 'c');
  const auto conflict = host.send(id, "other\n", other_call);
  REQUIRE_FALSE(conflict);
  CHECK(conflict.error().code == ErrorCode::idempotency_conflict);
  REQUIRE(host.send(id, "second\n"));
  CHECK(host.wait(id, {}).happened == wire::WaitOutcome::ended);
  std::string all;
  for (const Piece& piece : pieces_of(host.read(id))) {
    all += piece.bytes;
  }
  CHECK(all == "first\nsecond\n");
}

TEST_CASE("side channel: only the process itself has descriptor 3") {
  const Container container;
  Host host(container);
  const std::string id = host.new_id();
  sandbox::StartRequest plain;
  plain.id = id;
  plain.command = "echo x >&3 || echo none; sleep 60";
  plain.cwd = "/app";
  const auto started = host.bridge.sandbox().processes().start(plain, k_patience, {.idle = milliseconds(100)}, {});
  REQUIRE(started);
  CHECK(started->state.out.total == 5);
  CHECK(started->state.side.total == 0);
  CHECK(host.read(id).empty());
  const auto sent = host.send(id, "x");
  REQUIRE(sent);
  CHECK(sent->count == 0);
}

TEST_CASE("side channel: a terminal excludes it") {
  const Container container;
  Host host(container);
  sandbox::StartRequest request;
  request.id = host.new_id();
  request.command = "true";
  request.cwd = "/app";
  request.terminal = wire::TerminalSize{80, 24};
  request.has_side_channel = true;
  const auto started = host.bridge.sandbox().processes().start(request, k_patience, {}, {});
  REQUIRE_FALSE(started);
  CHECK(started.error().code == ErrorCode::bad_request);
}
