#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/fields.hpp"
#include "wire/file_entry.hpp"
#include "wire/file_messages.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"
#include "wire/text_format.hpp"

namespace dockbridge::wire {

// Requests that search files and directories. Rules for these structs are in file_messages.hpp. The agent adds entries
// to a body while they fit, so an answer has `to_json()` for its head, and its body is made by a class of its own.

/// Largest body of an answer to a search.
inline constexpr std::size_t k_max_found_bytes = k_max_body_to_host - 4096;

/// Result of a `file.grep`: lines, or files only, or files with the number of their matches.
enum class GrepOutput : std::uint8_t { content, files, count };
inline constexpr std::array<std::string_view, 3> k_grep_output_names = {"content", "files", "count"};

inline std::string_view name_of(GrepOutput output) {
  return k_grep_output_names.at(static_cast<std::size_t>(output));
}
inline std::optional<GrepOutput> grep_output_from(std::string_view name) {
  return value_named<GrepOutput>(k_grep_output_names, name);
}

/// Counts of a search over all its pages.
struct SearchTotals {
  std::uint64_t total = 0;  ///< entries in all pages
  bool more = false;        ///< the next page begins at `offset` plus `shown`
  std::uint64_t hidden = 0;
  std::uint64_t ignored = 0;
  std::uint64_t unreadable = 0;
  std::vector<std::string> unreadable_paths;
};

/// Texts one after another, as long as they fit into the answer to a search.
class FoundBody {
 public:
  /// False if the text does not fit.
  bool add(std::string_view text);
  [[nodiscard]] std::uint64_t count() const { return m_count; }
  std::string take() { return std::move(m_text); }

 private:
  std::string m_text;
  std::uint64_t m_count = 0;
};

/// Answer to `file.list` and `file.glob`.
struct FileListing {
  std::string path;
  std::vector<FileEntry> entries;  ///< the body, made of `encode(entry)`
  std::uint64_t shown = 0;         ///< entries of this page, for the offset of the next
  SearchTotals totals;

  [[nodiscard]] nlohmann::json to_json() const;
  static FileListing from(const Field& head, std::string_view body);
};

struct FileListRequest {
  static constexpr Operation k_operation = Operation::file_list;
  using Answer = FileListing;

  std::string path;
  std::vector<std::string> ignore;  ///< globs
  std::uint32_t depth = 1;          ///< 0 means no limit
  bool honour_ignore_files = false;
  bool details = false;  ///< size, time and mode
  std::uint64_t offset = 0;
  std::size_t max = 1000;

  [[nodiscard]] nlohmann::json to_json() const;
  static FileListRequest from(const Field& head, std::string_view body);
};

struct FileGlobRequest {
  static constexpr Operation k_operation = Operation::file_glob;
  using Answer = FileListing;

  std::string path;
  std::string pattern;
  bool newest_first = false;
  bool honour_ignore_files = true;
  bool hidden = false;
  std::uint64_t offset = 0;
  std::size_t max = 100;

  [[nodiscard]] nlohmann::json to_json() const;
  static FileGlobRequest from(const Field& head, std::string_view body);
};

/// A line of a file, cut around its match or at its end.
struct FoundLine {
  std::uint64_t number = 0;      ///< from 1
  bool matches = false;          ///< false for context
  std::uint64_t column = 0;      ///< byte of the line at which the match begins, from 1; 0 if it does not begin here
  std::string text;              ///< without the line's end
  std::uint64_t cut_before = 0;  ///< bytes of the line that are left out
  std::uint64_t cut_after = 0;
};

struct FoundFile {
  std::string path;                ///< relative to the start; empty if the start is the file
  std::uint64_t matches = 0;       ///< matching lines in all of it; with multi-line, matches; 0 in GrepOutput::files
  std::vector<FoundLine> lines{};  ///< GrepOutput::content only: those on this page, with context
};

/// Body of the answer to a `file.grep`: files, as long as they fit.
class FoundFilesBody {
 public:
  /// False if the file does not fit.
  bool add(const FoundFile& file);
  [[nodiscard]] std::uint64_t count() const { return m_files.count(); }
  std::string take();

 private:
  FoundBody m_files;
};

struct FileGrepResult {
  std::string path;
  std::vector<FoundFile> files;  ///< the body, made by FoundFilesBody
  std::uint64_t shown = 0;       ///< matching lines or files of this page, for the offset of the next
  std::uint64_t matches = 0;     ///< in all files; 0 in GrepOutput::files
  std::uint64_t files_with_matches = 0;
  std::uint64_t files_searched = 0;
  std::uint64_t binary_skipped = 0;
  SearchTotals totals;             ///< of matching lines, or of files
  std::vector<std::string> notes;  ///< files that were not searched as one might expect

  [[nodiscard]] nlohmann::json to_json() const;
  static FileGrepResult from(const Field& head, std::string_view body);
};

struct FileGrepRequest {
  static constexpr Operation k_operation = Operation::file_grep;
  using Answer = FileGrepResult;

  std::string path;
  std::string pattern;
  bool literal = false;
  bool ignore_case = false;
  bool whole_word = false;
  bool multi_line = false;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  bool honour_ignore_files = true;
  bool hidden = false;
  std::size_t context = 0;
  GrepOutput output = GrepOutput::content;
  std::uint64_t offset = 0;
  std::size_t max = 100;

  [[nodiscard]] nlohmann::json to_json() const;
  static FileGrepRequest from(const Field& head, std::string_view body);
};

}  // namespace dockbridge::wire
