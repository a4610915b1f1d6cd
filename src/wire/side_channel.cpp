#include "wire/side_channel.hpp"

#include <cstring>

#include "wire/process_state.hpp"

namespace dockbridge::wire {

Result<SidePiece> take_side_piece(std::string_view& stream) {
  SidePieceHeader header;
  if (stream.size() < sizeof header) {
    return SidePiece{};
  }
  std::memcpy(&header, stream.data(), sizeof header);
  if (header.magic != SidePieceHeader::k_magic || header.size == 0 || header.size > k_max_side_piece ||
      header.out > k_max_stream_bytes || header.err > k_max_stream_bytes) {
    return fail(ErrorCode::protocol_violation, "The stored side channel is damaged");
  }
  if (stream.size() - sizeof header < header.size) {
    return SidePiece{};
  }
  const SidePiece piece{header.out, header.err, stream.substr(sizeof header, header.size)};
  stream.remove_prefix(sizeof header + header.size);
  return piece;
}

}  // namespace dockbridge::wire
