#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/seen_revisions.hpp"
#include "util/clock.hpp"
#include "wire/file_entry.hpp"
#include "wire/frame.hpp"

namespace dockbridge::sandbox {

class Sandbox;

struct ReadRequest {
  std::string path;
  std::string owner;        ///< who has seen the file then
  std::int64_t offset = 0;  ///< lines to skip; negative: how many from the end to begin with
  std::size_t limit = 2000;
  std::uint64_t column = 0;  ///< characters of the first line to skip; that line is then cut by `max_bytes` only
  std::size_t max_line_characters = 2000;
  std::size_t max_bytes = 96ULL * 1024;
};

enum class FileKind { text, image, binary };

/// Some lines of a text file, or what else it is.
struct ReadFile {
  std::string path;  ///< the real one, without symbolic links
  std::uint64_t size = 0;
  std::string revision;  ///< names the content; empty: the file is too large to have one
  std::int64_t modified_at_ms = 0;
  FileKind kind = FileKind::text;
  std::string type;  ///< of an image: its MIME type; of a binary: what people call it

  // Of an image, as it is to be shown; 0 if unknown.
  std::uint64_t width = 0;
  std::uint64_t height = 0;

  // Of text.
  std::string text;  ///< every line ended by "\n"
  std::size_t lines = 0;
  std::int64_t first_line = 1;  ///< counted from 1; negative: from the end
  std::optional<std::uint64_t> total_lines;
  bool more = false;
  std::uint64_t cut_lines = 0;
  std::string encoding;
  std::string line_ends;
  bool final_newline = true;
  std::string previous_revision;  ///< revision of the owner's previous page, if it differs
};

/// A whole file, read from one open file.
struct WholeFile {
  FileKind kind = FileKind::binary;
  std::string type;  ///< as in ReadFile
  std::string revision;
  std::string bytes;
};

/// An image that was scaled down.
struct ScaledImage {
  std::string type;      ///< MIME type
  std::string revision;  ///< of the file
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::string bytes;
};

/// Whose change it is, and what they think the file holds.
struct ChangeRequest {
  std::string path;
  std::string owner;
  std::optional<std::string> expected_revision;  ///< or its start; none: what the owner saw there last
  bool match_is_enough = false;                  ///< an exact and unique match stands for having read the file
};

struct NewContent {
  std::string_view bytes;
  bool is_text = true;
  std::string encoding{};  ///< of text; empty: as it is, or UTF-8
  std::optional<unsigned> mode{};
};

struct TextEdit {
  std::string old_text;
  std::string new_text;
  bool replace_all = false;
};

/// The edits of one file of several.
struct FileEdits {
  std::string path;
  std::vector<TextEdit> edits;
  std::optional<std::string> expected_revision{};  ///< as in ChangeRequest
};

/// Edits of several files, which are made all or none.
struct EditSet {
  std::string owner;
  std::vector<FileEdits> files;
  bool match_is_enough = false;  ///< as in ChangeRequest
  bool preview = false;          ///< changes nothing
  bool is_replacement = false;   ///< leaves out files without a match; a preview counts as having read them
};

struct ChangedFile {
  std::string path;
  std::string revision;
  std::string before;  ///< revision; empty: the file is new
  std::string change;  ///< for undoing it; empty: it cannot be
  std::uint64_t size = 0;
  std::string encoding;
  std::vector<std::uint64_t> replacements;  ///< of each edit
  std::uint64_t added = 0;                  ///< lines
  std::uint64_t removed = 0;
  std::string diff;
  bool was_stale = false;     ///< others had changed the file since the owner saw it
  std::string stale_changes;  ///< what they had changed, as far as can be told
  std::vector<std::string> notes;
};

using wire::FileEntry;

/// What a search passed over, and how its pages go on.
struct SearchTotals {
  std::uint64_t total = 0;  ///< entries, in all pages
  bool more = false;
  std::uint64_t hidden = 0;
  std::uint64_t ignored = 0;
  std::uint64_t unreadable = 0;
  std::vector<std::string> unreadable_paths;
};

struct FileListing {
  std::string path;
  std::vector<FileEntry> entries;
  std::uint64_t shown = 0;  ///< what this page takes up, for the offset of the next
  SearchTotals totals;
};

struct ListRequest {
  std::string path;
  std::vector<std::string> ignore;
  std::size_t depth = 1;
  bool honour_ignore_files = false;
  bool details = false;  ///< size, time and mode
  std::uint64_t offset = 0;
  std::size_t max = 1000;
};

struct GlobRequest {
  std::string path;
  std::string pattern;
  bool newest_first = false;
  bool honour_ignore_files = true;
  bool hidden = false;
  std::uint64_t offset = 0;
  std::size_t max = 100;
};

struct FileGrepRequest {
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
  std::string output = "content";  ///< or files, count
  std::uint64_t offset = 0;
  std::size_t max = 100;
};

struct FoundLine {
  std::uint64_t number = 0;
  bool matches = false;
  std::uint64_t column = 0;
  std::string text;
  std::uint64_t cut_before = 0;
  std::uint64_t cut_after = 0;
};

struct FoundInFile {
  std::string path;
  std::uint64_t matches = 0;
  std::vector<FoundLine> lines;
};

struct FileGrepResult {
  std::string path;
  std::vector<FoundInFile> files;
  std::uint64_t shown = 0;
  std::uint64_t files_with_matches = 0;
  std::uint64_t files_searched = 0;
  std::uint64_t binary_skipped = 0;
  SearchTotals totals;             ///< of matching lines, or of files
  std::vector<std::string> notes;  ///< what was not searched as it should be
};

/// The container's files. Any thread may call; what takes long ends when `limit` says so. Paths are absolute in the
/// container. Errors of the agent come as they are: `no_such_file`, `not_read`, `file_changed` and so on.
class Files {
 public:
  /// `root`: the directory beneath which everything stays; empty: no limit.
  Files(Sandbox& sandbox, std::string root) : m_sandbox(sandbox), m_root(std::move(root)) {}

  /// What relative paths are relative to: the workdir, or the root if the workdir is not beneath it.
  [[nodiscard]] const std::string& base() const;

  Result<ReadFile> read(const ReadRequest& request, const CallLimit& limit);
  /// Returns the bytes unchanged, and marks the file as read by `owner`. Error `too_large` beyond `max_bytes`.
  Result<WholeFile> whole(const std::string& path, const std::string& owner, std::uint64_t max_bytes,
                          const CallLimit& limit);
  /// The image with at most `max_side` pixels on its longer side. Marks the file as read by `owner`.
  Result<ScaledImage> scaled_image(const std::string& path, const std::string& owner, std::uint32_t max_side,
                                   const CallLimit& limit);
  /// Waits until the file is not as it was at `modified_at_ms` (0: there was none) any more. False: the time is up.
  Result<bool> await_change(const std::string& path, std::int64_t modified_at_ms, milliseconds timeout,
                            const CallLimit& limit);
  // The limit's stop token does not interrupt a change that was sent, because the caller must learn its outcome.
  Result<ChangedFile> write(const ChangeRequest& request, const NewContent& content, const CallLimit& limit = {});
  Result<ChangedFile> edit(const ChangeRequest& request, const std::vector<TextEdit>& edits,
                           const CallLimit& limit = {});
  /// The changed files in their order. A preview has the changes that would be made.
  Result<std::vector<ChangedFile>> edit_all(const EditSet& set, const CallLimit& limit = {});
  /// Brings back what was there before a change; empty: before the newest one.
  Result<ChangedFile> undo(const ChangeRequest& request, const std::string& change, const CallLimit& limit = {});

  Result<FileListing> list(const ListRequest& request, milliseconds patience, const CallLimit& limit);
  Result<FileListing> glob(const GlobRequest& request, milliseconds patience, const CallLimit& limit);
  Result<FileGrepResult> grep(const FileGrepRequest& request, milliseconds patience, const CallLimit& limit);

  /// A content that comes in pieces: nothing of it is seen before `finish`, nor afterwards if that is never called.
  class Upload {
   public:
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;
    Upload(Upload&& other) noexcept;
    Upload& operator=(Upload&&) = delete;

    /// At most a few megabytes at a time.
    Result<void> append(std::string_view bytes, const CallLimit& limit = {});
    /// `content` tells what it is; its bytes have been sent.
    Result<ChangedFile> finish(const ChangeRequest& request, const NewContent& content, const CallLimit& limit = {});

   private:
    friend class Files;
    Upload(Files& files, std::string path, std::string token);
    Files* m_files;
    std::string m_path;
    std::string m_token;  ///< empty: over
    bool m_first = true;
  };
  Upload upload(const std::string& path);

  /// One open file of the container, read from its start to its end. The agent checks at the end that all pieces come
  /// from one version of the file. The host checks that pieces are in order, do not overlap, and stay within the
  /// announced size.
  class Download {
   public:
    struct Piece {
      std::uint64_t offset = 0;  ///< the bytes between the previous piece and this one are a hole
      std::string bytes;         ///< may be empty
    };

    ~Download();
    Download(const Download&) = delete;
    Download& operator=(const Download&) = delete;
    Download(Download&& other) noexcept;
    Download& operator=(Download&&) = delete;

    [[nodiscard]] std::uint64_t size() const { return m_size; }
    [[nodiscard]] unsigned mode() const { return m_mode; }
    /// nullopt after the last piece. Error `file_changed` if the file was written to during the copy.
    Result<std::optional<Piece>> next(const CallLimit& limit);
    /// Revision of the whole content; empty before the last piece.
    [[nodiscard]] const std::string& revision() const { return m_revision; }

   private:
    friend class Files;
    explicit Download(Files& files) : m_files(&files) {}
    Result<Piece> checked_piece(wire::Frame frame);
    Files* m_files;
    std::string m_token{};  ///< empty when the copy is over
    std::uint64_t m_size = 0;
    unsigned m_mode = 0;
    std::uint64_t m_received = 0;  ///< bytes received, holes included
    std::uint64_t m_checked = 0;   ///< bytes that the agent has checked
    std::string m_revision{};
  };
  Result<Download> download(const std::string& path, const CallLimit& limit);

 private:
  enum class Repeat { never, once };
  /// `about`, if given, receives the properties of the file. The file then counts as read by `owner`.
  Result<Download> open_download(const std::string& path, const CallLimit& limit, const std::string* owner,
                                 WholeFile* about);
  Result<wire::Frame> ask(nlohmann::json head, std::string_view body, milliseconds patience, Repeat repeat,
                          const CallLimit& limit);
  nlohmann::json change_head(const char* operation, const ChangeRequest& request) const;
  nlohmann::json write_head(const ChangeRequest& request, const NewContent& content) const;
  /// Tells how to recognize the file as it was before a change.
  std::string revision_hint(const ChangeRequest& request);
  Result<ChangedFile> change(const ChangeRequest& request, nlohmann::json head, std::string_view body,
                             const CallLimit& limit);
  /// An answer that cannot be understood ends the connection.
  template <typename Value>
  Result<Value> believed(Result<Value> value);

  Sandbox& m_sandbox;
  std::string m_root;
  SeenRevisions m_revisions;
};

}  // namespace dockbridge::sandbox
