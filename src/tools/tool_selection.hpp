#pragma once

#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "error/error.hpp"

namespace dockbridge::tools {

/// Every tool, in the order in which they are listed.
inline constexpr std::array<std::string_view, 14> k_tool_names = {
    "execute_command", "check_process", "send_input", "control_process", "python",    "file_read",   "file_write",
    "file_edit",       "file_undo",     "file_ls",    "file_glob",       "file_grep", "file_upload", "file_download"};

/// The tools that clients can see and call. All texts for clients name only these.
class ToolSelection {
 public:
  /// Selects all tools.
  ToolSelection() = default;
  /// Names, globs and "minimal", with commas between them. Error `bad_option` if one matches no tool.
  static Result<ToolSelection> parse(std::string_view list);

  [[nodiscard]] bool contains(std::string_view tool) const;
  /// The same selection without the tools that are not visible.
  [[nodiscard]] ToolSelection visible_part(const std::function<bool(const std::string& tool)>& visible) const;
  /// `text` without the sentences that name a tool outside the selection. Sentences end with ". ", ".\n" or a newline.
  [[nodiscard]] std::string keep_sentences(std::string_view text) const;

 private:
  std::set<std::string, std::less<>> m_hidden;
};

}  // namespace dockbridge::tools
