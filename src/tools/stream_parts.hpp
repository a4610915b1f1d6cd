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

/// One stream by itself.
std::string text_of(const std::vector<StreamPart>& parts, const Rendering& render);

/// Both streams in the order of writing, as far as it is known. A line "[stderr]" goes before stderr, and a line
/// "[stdout]" before stdout that follows it. Where the other stream was written to in the middle of a line, the line is
/// finished first.
std::string interleaved_text(const std::vector<StreamPart>& out, const std::vector<StreamPart>& err,
                             const wire::WriteOrder& order, const Rendering& render);

}  // namespace dockbridge::tools
