#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"
#include "wire/file_change_messages.hpp"

namespace dockbridge::agent {

using wire::TextEdit;

struct Edited {
  std::string text;
  std::vector<std::size_t> replacements;  ///< of each edit
};

/// The edits in their order, each on the result of the one before: all, or an error. The text is UTF-8.
///
/// Line ends are the file's: where it has CR LF, an edit that knows only LF means those, and its new text gets them. An
/// edit that says CR LF itself is taken to the letter. In a file of both kinds either is matched, and the new text gets
/// what it replaces, or what the line has that it stands in.
///
/// Errors, which say which edit of several it was: `empty_old_text`, `identical_texts`, `result_too_large`,
/// `ambiguous_match` with the number of places and the first of their lines, and `no_match` with the lines that come
/// nearest and what is different in them. The time is linear in the text for each edit, and messages are a few KB at
/// most.
Result<Edited> apply_edits(std::string_view text, std::span<const TextEdit> edits);

}  // namespace dockbridge::agent
