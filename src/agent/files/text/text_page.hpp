#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/files/file_space.hpp"
#include "agent/files/text/encoding.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// Files up to this size have a revision, and can be written and edited; to know it they are read as a whole.
inline constexpr std::uint64_t k_most_revised_bytes = 100ULL * 1024 * 1024;
/// What is held in memory at once; larger files are read in pieces.
inline constexpr std::size_t k_most_whole_bytes = 16ULL * 1024 * 1024;

struct PageRequest {
  std::int64_t offset = 0;  ///< lines to skip; negative: how many from the end to begin with
  std::size_t limit = 2000;
  std::uint64_t column = 0;  ///< characters of the first line to skip; that line is then cut by `most_bytes` only
  std::size_t most_line_characters = 2000;
  std::size_t most_bytes = 256ULL * 1024;
};

/// Some lines of a file, in UTF-8, and what is to be known of the whole of it.
struct TextPage {
  std::string text;  ///< every line ended by "\n", whatever it ends with in the file
  std::size_t lines = 0;
  std::int64_t first_line = 1;  ///< counted from 1; negative: from the end, in a file that was not read as a whole
  std::optional<std::uint64_t> total_lines;
  bool more = false;  ///< lines follow
  std::size_t cut_lines = 0;
  Encoding encoding = Encoding::utf8;
  LineEnds ends = LineEnds::none;
  bool final_newline = true;
};

/// What a file turned out to be.
struct FileContent {
  std::uint64_t size = 0;
  std::string revision;              ///< empty: too large to have one
  std::string start;                 ///< its first bytes
  std::optional<TextPage> page;      ///< none: not text, or UTF-16 that is broken or too large to be shown
  std::optional<std::string> whole;  ///< the bytes, if they were few enough to be held
};

Result<FileContent> read_content(const ResolvedFile& file, const PageRequest& request);

/// Lines of a text that is there as a whole.
TextPage page_of(std::string_view text, const PageRequest& request);

}  // namespace dockbridge::agent
