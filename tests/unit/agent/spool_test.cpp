#include "agent/spool.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/temporary_directory.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"

using namespace dockbridge;
using agent::SpoolCaps;
using agent::SpoolReader;
using agent::SpoolWriter;
using test::TemporaryDirectory;
using wire::StreamState;

namespace {

/// The byte at `offset` of the test stream; its neighbours, and the bytes one ring further, differ from it.
char byte_at(std::uint64_t offset) {
  return static_cast<char>((offset * 0x9E3779B97F4A7C15ULL) >> 56);
}

std::string stream_bytes(std::uint64_t from, std::uint64_t count) {
  std::string bytes(count, '\0');
  for (std::uint64_t i = 0; i < count; ++i) {
    bytes[i] = byte_at(from + i);
  }
  return bytes;
}

/// Appends the next `count` bytes of the test stream.
void append_next(SpoolWriter& writer, std::uint64_t count) {
  writer.append(stream_bytes(writer.total(), count));
}

SpoolReader open_reader(const TemporaryDirectory& directory) {
  auto reader = SpoolReader::open(directory.fd(), "out");
  REQUIRE(reader);
  return std::move(*reader);
}

StreamState state_of(const SpoolReader& reader) {
  const auto state = reader.state();
  REQUIRE(state);
  return *state;
}

SpoolReader::Slice slice_of(const SpoolReader& reader, std::uint64_t offset, std::size_t max) {
  auto slice = reader.read(offset, max);
  REQUIRE(slice);
  return std::move(*slice);
}

void check_state(const StreamState& state, const StreamState& expected) {
  CHECK(state.total == expected.total);
  CHECK(state.head_end == expected.head_end);
  CHECK(state.tail_start == expected.tail_start);
}

/// What a spool with these caps holds of a stream of `total` bytes.
StreamState expected_state(std::uint64_t total, const SpoolCaps& caps) {
  const std::uint64_t head_end = std::min(total, caps.head);
  return {total, head_end, total > caps.head + caps.tail ? total - caps.tail : head_end};
}

/// Every byte the state says is held, in pieces of at most `max`.
void check_held_bytes(const SpoolReader& reader, std::size_t max) {
  const StreamState state = state_of(reader);
  const std::array<std::pair<std::uint64_t, std::uint64_t>, 2> parts = {std::pair{std::uint64_t{0}, state.head_end},
                                                                        std::pair{state.tail_start, state.total}};
  for (const auto& [begin, end] : parts) {
    for (std::uint64_t offset = begin; offset < end;) {
      const auto slice = slice_of(reader, offset, max);
      REQUIRE(slice.offset == offset);
      REQUIRE(!slice.bytes.empty());
      REQUIRE(slice.bytes == stream_bytes(offset, slice.bytes.size()));
      offset += slice.bytes.size();
    }
  }
}

/// Runs `work` in a forked child in which no file can grow beyond `bytes`, like a disk that is full.
template <typename Work>
void with_file_size_limit(rlim_t bytes, const Work& work) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    work();
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

constexpr std::uint64_t k_header_bytes = 4096;

}  // namespace

TEST_CASE("a spool that does not exist reads as an empty stream") {
  const TemporaryDirectory directory;
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {0, 0, 0});
  const auto slice = slice_of(reader, 7, 100);
  CHECK(slice.bytes.empty());
  CHECK(slice.offset == 7);
}

TEST_CASE("the spool file appears with the first byte and not before") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {10, 10});
  writer.append("");
  CHECK_FALSE(std::filesystem::exists(directory / "out"));
  writer.append("x");
  CHECK(std::filesystem::exists(directory / "out"));
}

TEST_CASE("head, tail and gap are exact at every length around the caps") {
  const SpoolCaps caps{8, 5};
  for (std::uint64_t total = 1; total <= 3 * (caps.head + caps.tail); ++total) {
    CAPTURE(total);
    const TemporaryDirectory directory;
    SpoolWriter writer(directory.fd(), "out", caps);
    for (std::uint64_t i = 0; i < total; ++i) {
      append_next(writer, 1);
    }
    const auto reader = open_reader(directory);
    CHECK(writer.total() == total);
    check_state(state_of(reader), expected_state(total, caps));
    check_held_bytes(reader, 3);
  }
}

TEST_CASE("one append may be longer than head and tail together") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  append_next(writer, 100);
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {100, 8, 95});
  check_held_bytes(reader, 100);
}

TEST_CASE("an append that begins in the head may end beyond the tail") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  append_next(writer, 3);
  append_next(writer, 20);
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {23, 8, 18});
  check_held_bytes(reader, 100);
}

TEST_CASE("the file is never larger than its header, head and tail") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {100, 50});
  for (int i = 0; i < 200; ++i) {
    append_next(writer, 7);
  }
  CHECK(std::filesystem::file_size(directory / "out") == k_header_bytes + 150);
}

TEST_CASE("a read never crosses the gap") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  append_next(writer, 40);
  const auto reader = open_reader(directory);

  SUBCASE("from the head it stops where the gap begins") {
    const auto slice = slice_of(reader, 6, 100);
    CHECK(slice.offset == 6);
    CHECK(slice.bytes == stream_bytes(6, 2));
  }
  SUBCASE("from the gap it starts where the tail begins") {
    for (const std::uint64_t offset : {8, 20, 34}) {
      const auto slice = slice_of(reader, offset, 100);
      CHECK(slice.offset == 35);
      CHECK(slice.bytes == stream_bytes(35, 5));
    }
  }
  SUBCASE("from the end, or beyond it, there is nothing") {
    for (const std::uint64_t offset : {std::uint64_t{40}, std::uint64_t{41}, ~std::uint64_t{0}}) {
      const auto slice = slice_of(reader, offset, 100);
      CHECK(slice.offset == offset);
      CHECK(slice.bytes.empty());
    }
  }
  SUBCASE("of no bytes it still tells the state") {
    const auto slice = slice_of(reader, 0, 0);
    CHECK(slice.bytes.empty());
    check_state(slice.state, {40, 8, 35});
  }
}

TEST_CASE("for any caps and chunks, every byte the state says is held reads back exactly") {
  std::mt19937 random(20240611);
  const auto up_to = [&](std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(0, most)(random); };
  for (int round = 0; round < 60; ++round) {
    const SpoolCaps caps{1 + up_to(200), 1 + up_to(200)};
    const std::uint64_t longest_chunk = 1 + up_to(2 * caps.tail);
    CAPTURE(caps.head);
    CAPTURE(caps.tail);
    CAPTURE(longest_chunk);
    const TemporaryDirectory directory;
    SpoolWriter writer(directory.fd(), "out", caps);
    append_next(writer, 1);
    const auto reader = open_reader(directory);
    for (int step = 0; step < 40; ++step) {
      append_next(writer, up_to(longest_chunk));
      const StreamState expected = expected_state(writer.total(), caps);
      check_state(state_of(reader), expected);
      check_held_bytes(reader, 1 + up_to(300));

      const std::uint64_t offset = up_to(writer.total() + 10);
      const auto slice = slice_of(reader, offset, up_to(300));
      const bool in_gap = offset >= expected.head_end && offset < expected.tail_start;
      REQUIRE(slice.offset == (in_gap ? expected.tail_start : offset));
      REQUIRE(slice.bytes == stream_bytes(slice.offset, slice.bytes.size()));
    }
  }
}

TEST_CASE("a reader beside a busy writer never takes new bytes for old ones") {
  const TemporaryDirectory directory;
  const SpoolCaps caps{1000, 700};
  constexpr int appends = 20'000;
  SpoolWriter writer(directory.fd(), "out", caps);
  append_next(writer, 1);
  const auto reader = open_reader(directory);
  std::atomic<bool> written = false;
  std::jthread writing([&] {
    std::mt19937 random(1);
    for (int i = 0; i < appends; ++i) {
      append_next(writer, 1 + random() % 60);
    }
    written = true;
  });

  std::mt19937 random(2);
  std::uint64_t wrong = 0;
  std::uint64_t unordered = 0;
  StreamState last{};
  while (!written) {
    const auto state = state_of(reader);
    const std::uint64_t back = random() % (caps.head + 2 * caps.tail);
    const auto slice = slice_of(reader, state.total - std::min(state.total, back), 1 + random() % 400);
    wrong += slice.bytes == stream_bytes(slice.offset, slice.bytes.size()) ? 0 : 1;
    for (const StreamState& seen : {state, slice.state}) {
      const bool ordered = seen.head_end <= seen.tail_start && seen.tail_start <= seen.total;
      const bool forward = seen.total >= last.total && seen.head_end >= last.head_end;
      unordered += ordered && forward ? 0 : 1;
      last = seen;
    }
  }
  writing.join();
  CHECK(wrong == 0);
  CHECK(unordered == 0);
  check_state(state_of(reader), expected_state(writer.total(), caps));
  check_held_bytes(reader, 4096);
}

TEST_CASE("a reader that follows a stream within its caps sees every byte and never a gap") {
  const TemporaryDirectory directory;
  constexpr std::uint64_t total = 60'000;
  SpoolWriter writer(directory.fd(), "out", {total, 1});
  append_next(writer, 1);
  const auto reader = open_reader(directory);
  std::jthread writing([&] {
    while (writer.total() < total) {
      append_next(writer, 1);
    }
  });
  std::string followed;
  std::uint64_t gaps = 0;
  while (followed.size() < total && gaps == 0) {
    const auto slice = slice_of(reader, followed.size(), 4096);
    gaps += slice.offset != followed.size() || slice.state.head_end != slice.state.tail_start ? 1 : 0;
    followed += slice.bytes;
  }
  writing.join();
  CHECK(gaps == 0);
  CHECK(followed == stream_bytes(0, total));
}

TEST_CASE("what was written stays readable when the writer is gone") {
  const TemporaryDirectory directory;
  {
    SpoolWriter writer(directory.fd(), "out", {8, 5});
    append_next(writer, 40);
  }
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {40, 8, 35});
  check_held_bytes(reader, 100);
}

TEST_CASE("a damaged header is an error, not output") {
  const TemporaryDirectory directory;
  const auto damage = [&](std::string_view content) {
    REQUIRE(replace_file_at(directory.fd(), "out", content));
    const auto reader = open_reader(directory);
    const auto state = reader.state();
    const auto slice = reader.read(0, 100);
    REQUIRE_FALSE(slice);
    CHECK(slice.error().code == "spool_damaged");
    return state.has_value();
  };
  const auto header = [](std::string_view magic, std::array<std::uint64_t, 5> fields) {
    std::string page(k_header_bytes, '\0');
    std::memcpy(page.data(), magic.data(), magic.size());
    std::memcpy(page.data() + 8, fields.data(), sizeof fields);
    return page;
  };
  SUBCASE("an empty file") {
    CHECK_FALSE(damage(""));
  }
  SUBCASE("a file that ends within the header") {
    CHECK_FALSE(damage(header("DBSPOOL1", {8, 5, 3, 3, 3}).substr(0, 47)));
  }
  SUBCASE("another magic") {
    CHECK_FALSE(damage(header("DBSPOOL2", {8, 5, 3, 3, 3})));
  }
  SUBCASE("a ring of no bytes") {
    CHECK(damage(header("DBSPOOL1", {8, 0, 20, 8, 15})));
  }
  SUBCASE("a head of no bytes") {
    CHECK(damage(header("DBSPOOL1", {0, 5, 20, 8, 15})));
  }
  SUBCASE("more bytes than the file has") {
    CHECK(damage(header("DBSPOOL1", {8, 5, 3, 3, 3})));
  }
  SUBCASE("caps beyond any file") {
    CHECK(damage(header("DBSPOOL1", {~0ULL - 8, ~0ULL - 8, ~0ULL, ~0ULL, ~0ULL})));
  }
}

TEST_CASE("offsets out of order in a header are put into order before they are believed") {
  const TemporaryDirectory directory;
  std::string page(k_header_bytes, '\0');
  const std::array<std::uint64_t, 5> fields = {8, 5, 3, 6, 9};
  std::memcpy(page.data(), "DBSPOOL1", 8);
  std::memcpy(page.data() + 8, fields.data(), sizeof fields);
  REQUIRE(replace_file_at(directory.fd(), "out", page + "abc"));
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {3, 3, 3});
  CHECK(slice_of(reader, 0, 100).bytes == "abc");
}

TEST_CASE("the header lies in the file as docs/agent-protocol.md says") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  writer.append("0123456789abcdefghij");
  const auto content = read_file_at(directory.fd(), "out", 1 << 20);
  REQUIRE(content);
  CHECK(content->substr(0, 8) == "DBSPOOL1");
  std::array<std::uint64_t, 5> fields{};
  std::memcpy(fields.data(), content->data() + 8, sizeof fields);
  CHECK(fields == std::array<std::uint64_t, 5>{8, 5, 20, 8, 15});
  CHECK(content->substr(k_header_bytes, 8) == "01234567");
  // Offset 15 lies at (15 - 8) % 5 in the ring.
  CHECK(content->substr(k_header_bytes + 8) == "ijfgh");
}

TEST_CASE("what does not fit on a full disk is counted as the gap") {
  const TemporaryDirectory directory;

  SUBCASE("in the head: what came before stays, what came after is not taken for it") {
    with_file_size_limit(k_header_bytes + 50, [&] {
      SpoolWriter writer(directory.fd(), "out", {100, 100});
      append_next(writer, 40);
      append_next(writer, 20);
      append_next(writer, 7);
    });
    const auto reader = open_reader(directory);
    check_state(state_of(reader), {67, 40, 67});
    check_held_bytes(reader, 100);
  }
  SUBCASE("in the tail: the head stays") {
    with_file_size_limit(k_header_bytes + 120, [&] {
      SpoolWriter writer(directory.fd(), "out", {100, 100});
      append_next(writer, 110);
      append_next(writer, 30);
    });
    const auto reader = open_reader(directory);
    check_state(state_of(reader), {140, 100, 140});
    check_held_bytes(reader, 100);
  }
  SUBCASE("and when there is room again, what follows is held again") {
    // The ring's second half does not fit, its first half does.
    with_file_size_limit(k_header_bytes + 150, [&] {
      SpoolWriter writer(directory.fd(), "out", {100, 100});
      append_next(writer, 140);
      append_next(writer, 60);
      append_next(writer, 30);
    });
    const auto reader = open_reader(directory);
    check_state(state_of(reader), {230, 100, 200});
    check_held_bytes(reader, 100);
  }
}

TEST_CASE("a spool whose header did not fit is made as soon as there is room, and counts what it missed") {
  const TemporaryDirectory directory;
  with_file_size_limit(100, [&] {
    SpoolWriter writer(directory.fd(), "out", {100, 100});
    append_next(writer, 40);
    if (::faccessat(directory.fd(), "out", F_OK, 0) == 0) {
      ::_exit(1);
    }
    const rlimit roomy{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &roomy);
    append_next(writer, 20);
  });
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {60, 0, 40});
  check_held_bytes(reader, 100);
}

TEST_CASE("an append counts even where no spool can be made") {
  SpoolWriter writer(-1, "out", {8, 5});
  append_next(writer, 40);
  append_next(writer, 2);
  CHECK(writer.total() == 42);
}

TEST_CASE("a file that exists already is left as it is") {
  const TemporaryDirectory directory;
  REQUIRE(replace_file_at(directory.fd(), "out", "somebody else's"));
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  append_next(writer, 40);
  CHECK(read_file_at(directory.fd(), "out", 100).value_or("") == "somebody else's");
}

TEST_CASE("a spool that is trimmed keeps its first and last part, counts the gap, and stays so") {
  const TemporaryDirectory directory;
  constexpr std::uint64_t k_mebi = 1024 * 1024;
  SpoolWriter writer(directory.fd(), "out", {k_mebi, k_mebi});
  const auto on_disk = [&] {
    struct stat info {};
    REQUIRE(::fstatat(directory.fd(), "out", &info, 0) == 0);
    return static_cast<std::uint64_t>(info.st_blocks) * 512;
  };
  const SpoolReader reader = [&] {
    append_next(writer, 100);
    return open_reader(directory);
  }();
  const auto check_kept = [&](std::uint64_t head, std::uint64_t tail) {
    const StreamState state = state_of(reader);
    CHECK(state.total == writer.total());
    CHECK(state.head_end == head);
    CHECK(state.total - state.tail_start == tail);
    check_held_bytes(reader, 50'000);
  };
  constexpr std::uint64_t k_part = 128 * 1024;

  SUBCASE("when the ring has gone round") {
    append_next(writer, 5 * k_mebi + 4321);
  }
  SUBCASE("when there was no gap") {
    append_next(writer, k_mebi + 1234);
  }
  SUBCASE("when all was in the head") {
    append_next(writer, k_mebi / 2);
  }
  writer.trim(2 * k_part);
  check_kept(k_part, k_part);
  CHECK(on_disk() <= 2 * k_part + 4 * 4096);
  for (int i = 0; i < 300; ++i) {
    append_next(writer, 9999);
    check_kept(k_part, k_part);
    CHECK(on_disk() <= 2 * k_part + 8 * 4096);
  }
}

TEST_CASE("a spool that is trimmed before there is anything in it loses nothing until there is too much") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {1024 * 1024, 1024 * 1024});
  writer.trim(256 * 1024);
  while (writer.total() < 256 * 1024) {
    append_next(writer, 4096);
    const SpoolReader reader = open_reader(directory);
    const StreamState state = state_of(reader);
    CHECK(state.head_end == state.tail_start);
    check_held_bytes(reader, 50'000);
  }
  append_next(writer, 4096);
  const StreamState state = state_of(open_reader(directory));
  CHECK(state.tail_start - state.head_end == 4096);
}

TEST_CASE("a reader beside a writer that is trimmed sees no byte that is not there any more") {
  const TemporaryDirectory directory;
  constexpr std::uint64_t k_mebi = 1024 * 1024;
  SpoolWriter writer(directory.fd(), "out", {4 * k_mebi, 4 * k_mebi});
  append_next(writer, 8 * k_mebi);
  std::atomic<bool> done = false;
  std::thread trimmer([&] {
    for (std::uint64_t limit = 8 * k_mebi; limit > 512 * 1024; limit -= 64 * 1024) {
      writer.trim(limit);
    }
    done = true;
  });
  const SpoolReader reader = open_reader(directory);
  bool exact = true;
  for (std::uint64_t offset = 0; !done; offset = (offset + 77'777) % (8 * k_mebi)) {
    const auto slice = reader.read(offset, 100'000);
    exact = exact && slice && slice->bytes == stream_bytes(slice->offset, slice->bytes.size());
  }
  trimmer.join();
  CHECK(exact);
}

TEST_CASE("a spool tells when something was appended last") {
  const TemporaryDirectory directory;
  CHECK(open_reader(directory).changed_at().value() == 0);
  SpoolWriter writer(directory.fd(), "out", {});
  const auto before = uptime_milliseconds_now();
  append_next(writer, 1);
  const auto changed = open_reader(directory).changed_at();
  REQUIRE(changed);
  CHECK(*changed >= before);
  CHECK(*changed <= uptime_milliseconds_now());
}
