#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/write_order.hpp"

namespace dockbridge::tools {

/// A part of one stream that a reply shows: a remark on a line of its own, then bytes. Either may be empty.
struct StreamPart {
  std::uint64_t from = 0;  ///< offset of the first byte in the stream
  std::string bytes;       ///< as the process wrote them
  std::string remark{};    ///< without a newline
};

/// Turns bytes of a process into text.
using Rendering = std::function<std::string(std::string_view bytes)>;

/// Text of one stream.
std::string text_of(const std::vector<StreamPart>& parts, const Rendering& render);

/// Text of both streams in the order of writing, as far as it is known. A line "[stderr]" precedes stderr, and a line
/// "[stdout]" precedes stdout after it. If the stream changes in the middle of a line, the line is completed first.
std::string interleaved_text(const std::vector<StreamPart>& out, const std::vector<StreamPart>& err,
                             const wire::WriteOrder& order, const Rendering& render);

}  // namespace dockbridge::tools
