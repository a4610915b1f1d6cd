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

/// Applies the edits in order, each to the result of the previous one: all of them, or none. The text is UTF-8.
///
/// The line ends of the file are kept. Where it has CR LF, LF in an edit matches CR LF, and the new text gets CR LF. An
/// edit that contains CR LF is applied literally. In a file with both, either is matched, and the new text gets the
/// line ends that it replaces, or those of its line.
///
/// Errors, with the number of the edit if there are several: `empty_old_text`, `identical_texts`, `result_too_large`,
/// `ambiguous_match` with the number of places and the first of their lines, and `no_match` with the most similar lines
/// and their differences. Each edit takes linear time. Messages have a few KB at most.
Result<Edited> apply_edits(std::string_view text, std::span<const TextEdit> edits);

}  // namespace dockbridge::agent
