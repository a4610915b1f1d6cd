#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "error/error.hpp"

namespace dockbridge::wire {

/// Bytes that a process has written to its side channel. `out` and `err` are the totals of its other streams at that
/// time: everything that the process wrote to them before these bytes is counted.
struct SidePiece {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
  std::string_view bytes;
};

/// Header of a piece in the stream `side`. Its bytes follow.
struct SidePieceHeader {
  std::uint32_t magic = k_magic;
  std::uint32_t size = 0;
  std::uint64_t out = 0;
  std::uint64_t err = 0;

  static constexpr std::uint32_t k_magic = 0x65646973;  // "side"
};
static_assert(sizeof(SidePieceHeader) == 24);

/// Most bytes of one piece.
inline constexpr std::size_t k_max_side_piece = 32UL * 1024;

/// Takes the first piece of `stream`, which begins with a header. Returns a piece without bytes if it is incomplete.
/// Error `protocol_violation` if the stream is no sequence of pieces.
Result<SidePiece> take_side_piece(std::string_view& stream);

}  // namespace dockbridge::wire
