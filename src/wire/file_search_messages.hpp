#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/codec.hpp"
#include "wire/file_messages.hpp"
#include "wire/file_names.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"

namespace dockbridge::wire {

// Requests that search files and directories. The agent adds entries to the body of an answer while they fit. That body
// is written by FoundBody and FoundFilesBody; `visit` only reads it.

/// An entry of a directory, in the body of an answer to `file.list` or `file.glob`.
struct FileEntry {
  std::string path;  ///< relative to the start of the search; any bytes but NUL
  FileType type = FileType::unknown;
  // A listing has these only if its request asks for details.
  std::uint64_t size = 0;
  std::int64_t modified_at_ms = 0;
  std::optional<unsigned> mode{};  ///< only in a listing
  std::string target{};            ///< of a link
};
std::string encode(const FileEntry& entry);
/// Decodes a body; nullopt if it is malformed.
std::optional<std::vector<FileEntry>> decode_entries(std::string_view body);

/// Largest body of an answer to a search.
inline constexpr std::size_t k_max_found_bytes = k_max_body_to_host - 4096;

/// Result of a `file.grep`: lines, or files only, or files with the number of their matches.
enum class GrepOutput : std::uint8_t { content, files, count };
template <>
inline constexpr std::array<std::string_view, 3> k_names<GrepOutput> = {"content", "files", "count"};

/// Counts of a search over all its pages.
struct SearchTotals {
  std::uint64_t total = 0;  ///< entries in all pages
  bool more = false;        ///< the next page begins at `offset` plus `shown`
  std::uint64_t hidden = 0;
  std::uint64_t ignored = 0;
  std::uint64_t unreadable = 0;
  std::vector<std::string> unreadable_paths;

  void visit(Codec& codec);
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

  void visit(Codec& codec);
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

  void visit(Codec& codec);
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

  void visit(Codec& codec);
};

/// A line of a file, cut around its match or at its end.
struct FoundLine {
  std::uint64_t number = 0;      ///< from 1
  bool matches = false;          ///< false for context
  std::uint64_t column = 0;      ///< byte of the line at which the match begins, from 1; 0 if it does not begin here
  std::string text;              ///< without the line's end
  std::uint64_t cut_before = 0;  ///< bytes of the line that are left out
  std::uint64_t cut_after = 0;

  /// `[number, column, text, cut_before, cut_after]`; column 0 means context.
  static FoundLine from_json(const Field& field);
};
nlohmann::json to_json(const FoundLine& line);

struct FoundFile {
  std::string path;                ///< relative to the start; empty if the start is the file
  std::uint64_t matches = 0;       ///< matching lines in all of it; with multi-line, matches; 0 in GrepOutput::files
  std::vector<FoundLine> lines{};  ///< GrepOutput::content only: those on this page, with context

  void visit(Codec& codec);
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
  std::vector<std::string> notes;  ///< on limits that affected the search

  void visit(Codec& codec);
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

  void visit(Codec& codec);
};

}  // namespace dockbridge::wire
