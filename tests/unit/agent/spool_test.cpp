#include "agent/spool.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "unit/agent/spool_stream.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"

using namespace dockbridge;
using namespace dockbridge::agent::test;
using agent::SpoolCaps;
using agent::SpoolReader;
using agent::SpoolWriter;

TEST_CASE("spool: a missing file reads as an empty stream") {
  const TemporaryDirectory directory;
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {0, 0, 0});
  const auto slice = slice_of(reader, 7, 100);
  CHECK(slice.bytes.empty());
  CHECK(slice.offset == 7);
}

TEST_CASE("spool: a file without a header reads as an empty stream") {
  const TemporaryDirectory directory;
  REQUIRE(replace_file_at(directory.fd(), "out", ""));
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {0, 0, 0});
  CHECK(slice_of(reader, 0, 100).bytes.empty());
  CHECK(reader.changed_at() == 0);
}

TEST_CASE("spool: a reader during creation sees nothing, then the first bytes") {
  for (int round = 0; round < 100; ++round) {
    const TemporaryDirectory directory;
    std::jthread writing([&] { SpoolWriter(directory.fd(), "out", {100, 100}).append("here it is"); });
    std::string found;
    while (found.empty()) {
      found = slice_of(open_reader(directory), 0, 100).bytes;
    }
    REQUIRE(found == "here it is");
  }
}

TEST_CASE("spool: the file is created with the first byte") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {10, 10});
  writer.append("");
  CHECK_FALSE(std::filesystem::exists(directory / "out"));
  writer.append("x");
  CHECK(std::filesystem::exists(directory / "out"));
}

TEST_CASE("spool: head, tail and gap are exact at every length around the caps") {
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

TEST_CASE("spool: one append may exceed head and tail together") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  append_next(writer, 100);
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {100, 8, 95});
  check_held_bytes(reader, 100);
}

TEST_CASE("spool: an append may begin in the head and end beyond the tail") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  append_next(writer, 3);
  append_next(writer, 20);
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {23, 8, 18});
  check_held_bytes(reader, 100);
}

TEST_CASE("spool: the file is never larger than header, head and tail") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {100, 50});
  for (int i = 0; i < 200; ++i) {
    append_next(writer, 7);
  }
  CHECK(std::filesystem::file_size(directory / "out") == k_header_bytes + 150);
}

TEST_CASE("spool: a read never crosses the gap") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  append_next(writer, 40);
  const auto reader = open_reader(directory);

  SUBCASE("from the head it stops at the gap") {
    const auto slice = slice_of(reader, 6, 100);
    CHECK(slice.offset == 6);
    CHECK(slice.bytes == stream_bytes(6, 2));
  }
  SUBCASE("from the gap it starts at the tail") {
    for (const std::uint64_t offset : {8, 20, 34}) {
      const auto slice = slice_of(reader, offset, 100);
      CHECK(slice.offset == 35);
      CHECK(slice.bytes == stream_bytes(35, 5));
    }
  }
  SUBCASE("from the end or beyond it, it is empty") {
    for (const std::uint64_t offset : {std::uint64_t{40}, std::uint64_t{41}, ~std::uint64_t{0}}) {
      const auto slice = slice_of(reader, offset, 100);
      CHECK(slice.offset == offset);
      CHECK(slice.bytes.empty());
    }
  }
  SUBCASE("of no bytes it has the state") {
    const auto slice = slice_of(reader, 0, 0);
    CHECK(slice.bytes.empty());
    check_state(slice.state, {40, 8, 35});
  }
}

TEST_CASE("spool: all stored bytes read back exactly, for any caps and chunks") {
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

TEST_CASE("spool: a concurrent reader never mistakes new bytes for old ones") {
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

TEST_CASE("spool: a reader that follows within the caps gets every byte") {
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

TEST_CASE("spool: stays readable after the writer has ended") {
  const TemporaryDirectory directory;
  {
    SpoolWriter writer(directory.fd(), "out", {8, 5});
    append_next(writer, 40);
  }
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {40, 8, 35});
  check_held_bytes(reader, 100);
}

TEST_CASE("spool: a damaged header is an error") {
  const TemporaryDirectory directory;
  const auto damage = [&](std::string_view content) {
    REQUIRE(replace_file_at(directory.fd(), "out", content));
    const auto reader = open_reader(directory);
    const auto state = reader.state();
    const auto slice = reader.read(0, 100);
    REQUIRE_FALSE(slice);
    CHECK(slice.error().code == ErrorCode::spool_damaged);
    return state.has_value();
  };
  const auto header = [](std::string_view magic, std::array<std::uint64_t, 5> fields) {
    std::string page(k_header_bytes, '\0');
    std::memcpy(page.data(), magic.data(), magic.size());
    std::memcpy(page.data() + 8, fields.data(), sizeof fields);
    return page;
  };
  SUBCASE("a file that ends within the header") {
    CHECK_FALSE(damage(header("DBSPOOL1", {8, 5, 3, 3, 3}).substr(0, 47)));
  }
  SUBCASE("another magic") {
    CHECK_FALSE(damage(header("DBSPOOL2", {8, 5, 3, 3, 3})));
  }
  SUBCASE("a ring of no bytes") {
    CHECK_FALSE(damage(header("DBSPOOL1", {8, 0, 20, 8, 15})));
  }
  SUBCASE("a head of no bytes") {
    CHECK_FALSE(damage(header("DBSPOOL1", {0, 5, 20, 8, 15})));
  }
  SUBCASE("more bytes than the file has") {
    CHECK(damage(header("DBSPOOL1", {8, 5, 3, 3, 3})));
  }
  SUBCASE("caps beyond any file") {
    CHECK_FALSE(damage(header("DBSPOOL1", {~0ULL - 8, ~0ULL - 8, ~0ULL, ~0ULL, ~0ULL})));
  }
}

TEST_CASE("spool: unordered offsets in a header are put into order") {
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

TEST_CASE("spool: the header has the layout of docs/agent-protocol.md") {
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
  // Offset 15 is at (15 - 8) % 5 in the ring.
  CHECK(content->substr(k_header_bytes + 8) == "ijfgh");
}

TEST_CASE("spool: an existing file is not changed") {
  const TemporaryDirectory directory;
  REQUIRE(replace_file_at(directory.fd(), "out", "somebody else's"));
  SpoolWriter writer(directory.fd(), "out", {8, 5});
  append_next(writer, 40);
  CHECK(read_file_at(directory.fd(), "out", 100).value_or("") == "somebody else's");
}

TEST_CASE("spool: records the time of the last append") {
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

TEST_CASE("spool: the order of both streams is kept after the writer has ended") {
  const TemporaryDirectory directory;
  {
    SpoolWriter writer(directory.fd(), "out", {100, 100});
    writer.note_order(1);  // before the file exists
    writer.append("warn");
    writer.note_order(10);
    writer.append("ing");
    writer.note_order(10);
    writer.append("!");
    writer.note_order(25);
    const auto meanwhile = open_reader(directory).order();
    REQUIRE(meanwhile);
    CHECK(meanwhile->size() == 2);
  }
  const SpoolReader reader = open_reader(directory);
  const auto order = reader.order();
  REQUIRE(order);
  REQUIRE(order->size() == 2);
  CHECK((*order)[0].out == 10);
  CHECK((*order)[0].err == 7);
  CHECK((*order)[1].out == 25);
  CHECK((*order)[1].err == 8);
  check_state(state_of(reader), {8, 8, 8});
  CHECK(slice_of(reader, 0, 100).bytes == "warning!");
}

TEST_CASE("spool: no marks give no order, and a cut header is an error") {
  const TemporaryDirectory directory;
  CHECK(open_reader(directory).order()->empty());
  SpoolWriter writer(directory.fd(), "out", {100, 100});
  writer.append("text");
  const SpoolReader reader = open_reader(directory);
  CHECK(reader.order()->empty());
  REQUIRE(::truncate((directory.path() / "out").c_str(), 4000) == 0);
  const auto order = reader.order();
  REQUIRE_FALSE(order);
  CHECK(order.error().code == ErrorCode::spool_damaged);
}
