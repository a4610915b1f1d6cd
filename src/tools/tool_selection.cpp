#include "tools/tool_selection.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace dockbridge::tools {

namespace {

constexpr std::array<std::string_view, 6> k_minimal = {"execute_command", "check_process", "send_input",
                                                       "file_read",       "file_edit",     "file_write"};

bool is_word(char c) {
  return c == '_' || (std::isalnum(static_cast<unsigned char>(c)) != 0);
}

bool names(std::string_view text, std::string_view tool) {
  for (std::size_t at = text.find(tool); at != std::string_view::npos; at = text.find(tool, at + 1)) {
    const std::size_t end = at + tool.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
      return true;
    }
  }
  return false;
}

/// Length of the first sentence, with the space or newline after it.
std::size_t sentence_length(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool ends = text[i] == '\n' || (text[i] == ' ' && i > 0 && text[i - 1] == '.');
    if (ends) {
      return i + 1;
    }
  }
  return text.size();
}

/// Adds the tools that match one entry; false if none does.
bool select(const std::string& glob, std::set<std::string_view>& selected) {
  if (glob == "minimal") {
    selected.insert(k_minimal.begin(), k_minimal.end());
    return true;
  }
  bool found = false;
  for (const std::string_view tool : k_tool_names) {
    if (::fnmatch(glob.c_str(), std::string(tool).c_str(), 0) == 0) {
      selected.insert(tool);
      found = true;
    }
  }
  return found;
}

}  // namespace

Result<ToolSelection> ToolSelection::parse(std::string_view list) {
  std::set<std::string_view> selected;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    const std::string glob(list.substr(from, comma - from));
    if (!select(glob, selected)) {
      return fail(ErrorCode::bad_option, fmt::format("No tool matches '{}'", glob),
                  fmt::format("Use minimal, or names and globs of: {}", fmt::join(k_tool_names, ", ")));
    }
    from = comma + 1;
  }
  ToolSelection selection;
  for (const std::string_view tool : k_tool_names) {
    if (!selected.contains(tool)) {
      selection.m_hidden.emplace(tool);
    }
  }
  return selection;
}

bool ToolSelection::contains(std::string_view tool) const {
  return !m_hidden.contains(tool);
}

ToolSelection ToolSelection::visible_part(const std::function<bool(const std::string& tool)>& visible) const {
  ToolSelection selection = *this;
  for (const std::string_view tool : k_tool_names) {
    if (!visible(std::string(tool))) {
      selection.m_hidden.emplace(tool);
    }
  }
  return selection;
}

std::string ToolSelection::keep_sentences(std::string_view text) const {
  if (m_hidden.empty()) {
    return std::string(text);
  }
  std::string kept;
  while (!text.empty()) {
    const std::string_view sentence = text.substr(0, sentence_length(text));
    const bool hidden =
        std::any_of(m_hidden.begin(), m_hidden.end(), [&](const std::string& tool) { return names(sentence, tool); });
    if (!hidden) {
      kept += sentence;
    }
    text.remove_prefix(sentence.size());
  }
  while (!kept.empty() && (kept.back() == ' ' || kept.back() == '\n')) {
    kept.pop_back();
  }
  return kept;
}

}  // namespace dockbridge::tools
