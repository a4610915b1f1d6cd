#include "wire/side_channel.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

using namespace dockbridge;
using wire::SidePieceHeader;

namespace {

std::string stored(SidePieceHeader header, const std::string& bytes) {
  header.size = static_cast<std::uint32_t>(bytes.size());
  std::string piece(sizeof header, '\0');
  std::memcpy(piece.data(), &header, sizeof header);
  return piece + bytes;
}

}  // namespace

TEST_CASE("side pieces: bytes and totals are taken one piece after the other") {
  const std::string all = stored({.out = 3, .err = 4}, "first") + stored({.out = 5, .err = 6}, "second");
  std::string_view left = all;
  const auto first = wire::take_side_piece(left);
  REQUIRE(first);
  CHECK(first->bytes == "first");
  CHECK(first->out == 3);
  CHECK(first->err == 4);
  const auto second = wire::take_side_piece(left);
  REQUIRE(second);
  CHECK(second->bytes == "second");
  CHECK(second->out == 5);
  CHECK(left.empty());
}

TEST_CASE("side pieces: an incomplete piece is not taken") {
  const std::string whole = stored({.out = 1}, "text");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string_view left = std::string_view(whole).substr(0, size);
    const auto piece = wire::take_side_piece(left);
    REQUIRE(piece);
    CHECK(piece->bytes.empty());
    CHECK(left.size() == size);
  }
}

TEST_CASE("side pieces: a header with another magic or a number out of range is a violation") {
  const auto is_rejected = [](const SidePieceHeader& header) {
    std::string bytes(sizeof header, '\0');
    std::memcpy(bytes.data(), &header, sizeof header);
    std::string_view left = bytes;
    const auto piece = wire::take_side_piece(left);
    return !piece && piece.error().code == ErrorCode::protocol_violation;
  };
  CHECK(is_rejected({.magic = 1, .size = 1}));
  CHECK(is_rejected({.size = 0}));
  CHECK(is_rejected({.size = wire::k_max_side_piece + 1}));
  CHECK(is_rejected({.size = 1, .out = ~std::uint64_t{0}}));
  CHECK(is_rejected({.size = 1, .err = ~std::uint64_t{0}}));
  CHECK_FALSE(is_rejected({.size = wire::k_max_side_piece}));
}
