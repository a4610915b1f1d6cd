#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/files/file_space.hpp"
#include "agent/files/text/encoding.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// Files up to this size have a revision, which requires reading the whole file, and can be written and edited.
inline constexpr std::uint64_t k_max_revised_bytes = 100ULL * 1024 * 1024;
/// Files up to this size are held in memory; larger files are read in pieces.
inline constexpr std::size_t k_max_whole_bytes = 16ULL * 1024 * 1024;

struct PageRequest {
  std::int64_t offset = 0;  ///< lines to skip; a negative number counts from the end
  std::size_t limit = 2000;
  std::uint64_t column = 0;  ///< characters of the first line to skip; only `most_bytes` limits that line then
  std::size_t most_line_characters = 2000;
  std::size_t most_bytes = 256ULL * 1024;
};

/// Some lines of a file, in UTF-8, and facts about the whole file.
struct TextPage {
  std::string text;  ///< every line ends with "\n", not with its line end in the file
  std::size_t lines = 0;
  /// Counted from 1; negative if counted from the end of a file that was not read as a whole.
  std::int64_t first_line = 1;
  std::optional<std::uint64_t> total_lines;
  bool more = false;  ///< lines follow
  std::size_t cut_lines = 0;
  Encoding encoding = Encoding::utf8;
  LineEnds ends = LineEnds::none;
  bool final_newline = true;
};

/// Content of a file, as far as it was read.
struct FileContent {
  std::uint64_t size = 0;
  std::string revision;              ///< empty if the file is too large
  std::string start;                 ///< its first bytes
  std::optional<TextPage> page;      ///< nullopt if not text, or UTF-16 that is invalid or too large to be shown
  std::optional<std::string> whole;  ///< the bytes, if the file is small enough
};

Result<FileContent> read_content(const ResolvedFile& file, const PageRequest& request);

/// Makes a page of a text that is in memory.
TextPage page_of(std::string_view text, const PageRequest& request);

}  // namespace dockbridge::agent
