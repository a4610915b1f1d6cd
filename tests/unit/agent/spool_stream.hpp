#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "agent/spool.hpp"
#include "support/temporary_directory.hpp"

namespace dockbridge::agent::test {

using dockbridge::test::TemporaryDirectory;
using wire::StreamState;

/// The byte at `offset` of the test stream. It differs from its neighbours and from the bytes one ring further.
inline char byte_at(std::uint64_t offset) {
  return static_cast<char>((offset * 0x9E3779B97F4A7C15ULL) >> 56);
}

inline std::string stream_bytes(std::uint64_t from, std::uint64_t count) {
  std::string bytes(count, '\0');
  for (std::uint64_t i = 0; i < count; ++i) {
    bytes[i] = byte_at(from + i);
  }
  return bytes;
}

/// Appends the next `count` bytes of the test stream.
inline void append_next(SpoolWriter& writer, std::uint64_t count) {
  writer.append(stream_bytes(writer.total(), count));
}

inline SpoolReader open_reader(const TemporaryDirectory& directory) {
  auto reader = SpoolReader::open(directory.fd(), "out");
  REQUIRE(reader);
  return std::move(*reader);
}

inline StreamState state_of(const SpoolReader& reader) {
  const auto state = reader.state();
  REQUIRE(state);
  return *state;
}

inline SpoolReader::Slice slice_of(const SpoolReader& reader, std::uint64_t offset, std::size_t max) {
  auto slice = reader.read(offset, max);
  REQUIRE(slice);
  return std::move(*slice);
}

inline void check_state(const StreamState& state, const StreamState& expected) {
  CHECK(state.total == expected.total);
  CHECK(state.head_end == expected.head_end);
  CHECK(state.tail_start == expected.tail_start);
}

/// Expected state of a spool with these caps after `total` bytes.
inline StreamState expected_state(std::uint64_t total, const SpoolCaps& caps) {
  const std::uint64_t head_end = std::min(total, caps.head);
  return {total, head_end, total > caps.head + caps.tail ? total - caps.tail : head_end};
}

/// All bytes that are stored according to the state, read in pieces of at most `max`.
inline void check_held_bytes(const SpoolReader& reader, std::size_t max) {
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

inline constexpr std::uint64_t k_header_bytes = 4096;

}  // namespace dockbridge::agent::test
