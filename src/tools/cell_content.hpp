#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/code_sessions.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

// Displays and value of a Python cell as content of a reply: text for the model, images as MCP images, and
// everything that only people can look at as links.

inline constexpr std::string_view k_python_prefix = "dockbridge://python/";

/// Content of a reply for the displays and the value of a cell.
struct CellContent {
  std::string text;               ///< without a final newline; empty if there is none
  std::vector<mcp::json> blocks;  ///< images and links
};

/// `process`: the name of the process in links. `max_bytes` bounds the text; what is left out is counted in it.
CellContent show_cell(const ToolRequest& call, const std::string& process, const sandbox::CellRecord& cell,
                      std::size_t max_bytes);

/// The parts of a cell that are shown as links. The number of a link is the position here, from 1.
std::vector<const sandbox::MimePart*> linked_parts(const sandbox::CellRecord& cell);

/// The best text of a value for a model; empty if there is none.
std::string model_text(const sandbox::MimeBundle& bundle);

/// The first `max_bytes` bytes, then the number of omitted bytes and the place to read them, which `rest` names.
std::string cut_text(const std::string& text, std::uint64_t whole_length, std::size_t max_bytes, std::string_view rest);

/// A value by MIME type for programs. Files are objects with `path` and `bytes`.
mcp::json bundle_fields(const sandbox::MimeBundle& bundle);

}  // namespace dockbridge::tools
