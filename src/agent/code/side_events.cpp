#include "agent/code/side_events.hpp"

#include <array>
#include <optional>
#include <string>

#include "wire/side_channel.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::string_view k_piece_magic = "side";
/// Events during a cell.
constexpr std::array<std::string_view, 2> k_busy_events = {R"({"event":"begin")", R"({"event":"display")"};

/// The bytes of all pieces; nullopt if the stream is no sequence of complete pieces.
std::optional<std::string> joined_pieces(std::string_view stream) {
  std::string bytes;
  while (!stream.empty()) {
    const auto piece = wire::take_side_piece(stream);
    if (!piece || piece->bytes.empty()) {
      return std::nullopt;
    }
    bytes += piece->bytes;
  }
  return bytes;
}

}  // namespace

bool is_driver_idle(std::string_view end_of_stream) {
  std::optional<std::string> text;
  // Events may contain the magic as well. Only at a true header, the pieces end with the stream.
  for (std::size_t at = end_of_stream.find(k_piece_magic); at != std::string_view::npos && !text;
       at = end_of_stream.find(k_piece_magic, at + 1)) {
    text = joined_pieces(end_of_stream.substr(at));
  }
  if (!text || !text->ends_with('\n')) {
    return false;
  }
  text->pop_back();
  const std::size_t line_end = text->rfind('\n');
  if (line_end == std::string::npos && !text->starts_with('{')) {
    return false;  // the event begins before the text
  }
  const std::string_view line = std::string_view(*text).substr(line_end == std::string::npos ? 0 : line_end + 1);
  for (const std::string_view busy : k_busy_events) {
    if (line.starts_with(busy)) {
      return false;
    }
  }
  return !line.empty();
}

}  // namespace dockbridge::agent
