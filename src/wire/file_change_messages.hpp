#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/fields.hpp"
#include "wire/file_messages.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"
#include "wire/text_format.hpp"

namespace dockbridge::wire {

// Requests that change files. Rules for these structs are in file_messages.hpp.

/// Edits of one request, in all its files.
inline constexpr std::size_t k_max_edits = 1000;
/// A content up to this size is sent in one message, a larger one in pieces.
inline constexpr std::size_t k_max_content_at_once = 16ULL * 1024 * 1024;

/// The owner of a change, and the content that the owner expects in the file.
struct ChangeRequest {
  std::string path;
  std::string owner;
  std::optional<std::string> expected_revision{};  ///< or its start; nullopt: what the owner saw there last
  bool match_is_enough = false;                    ///< an exact and unique match stands for having read the file
};

struct NewContent {
  std::string_view bytes;
  bool is_text = true;                 ///< UTF-8, to be stored in `encoding`
  std::optional<Encoding> encoding{};  ///< of text; nullopt: that of the file, or UTF-8
  std::optional<unsigned> mode{};      ///< permissions; nullopt: those of the file
};

/// One exact replacement.
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

struct ChangedFile {
  std::string path;
  std::string revision;
  std::string before;  ///< revision; empty: the file is new
  std::string change;  ///< id for undoing it; empty: it cannot be undone
  std::uint64_t size = 0;
  std::string encoding;
  std::vector<std::uint64_t> replacements;  ///< of each edit
  std::uint64_t added = 0;                  ///< lines
  std::uint64_t removed = 0;
  std::string diff;
  bool was_stale = false;     ///< others had changed the file since the owner saw it
  std::string stale_changes;  ///< diff of their changes, if it is known; not part of the answer to an edit set
  std::vector<std::string> notes;

  [[nodiscard]] Frame to_frame() const;
  static ChangedFile from(const Field& head, std::string_view body);
};

/// Answer to an edit set: the changes in the order of the files.
struct ChangedFiles {
  std::vector<ChangedFile> files;

  [[nodiscard]] Frame to_frame() const;
  static ChangedFiles from(const Field& head, std::string_view body);
};

/// Body: `content.bytes`.
struct FileWriteRequest {
  static constexpr Operation k_operation = Operation::file_write;
  using Answer = ChangedFile;

  ChangeRequest change;
  NewContent content;                    ///< without bytes if it is staged
  std::optional<std::string> staging{};  ///< name of the content that was sent in pieces

  [[nodiscard]] nlohmann::json to_json() const;
  static FileWriteRequest from(const Field& head, std::string_view body);
};

struct FileEditRequest {
  static constexpr Operation k_operation = Operation::file_edit;
  using Answer = ChangedFile;

  ChangeRequest change;
  std::vector<TextEdit> edits;

  [[nodiscard]] Frame to_frame() const;
  static FileEditRequest from(const Field& head, std::string_view body);
};

/// Edits of several files, which are made all or none.
struct FileEditSetRequest {
  static constexpr Operation k_operation = Operation::file_edit_set;
  using Answer = ChangedFiles;

  std::string owner;
  std::vector<FileEdits> files;
  bool match_is_enough = false;  ///< as in ChangeRequest
  bool preview = false;          ///< changes nothing
  bool is_replacement = false;   ///< leaves out files without a match; a preview counts as having read them

  [[nodiscard]] Frame to_frame() const;
  static FileEditSetRequest from(const Field& head, std::string_view body);
};

struct FileUndoRequest {
  static constexpr Operation k_operation = Operation::file_undo;
  using Answer = ChangedFile;

  ChangeRequest change;
  std::string change_id;  ///< or the start of its digits; empty: the newest change

  [[nodiscard]] nlohmann::json to_json() const;
  static FileUndoRequest from(const Field& head, std::string_view body);
};

struct FileStageAnswer {
  [[nodiscard]] static Frame to_frame();
  static FileStageAnswer from(const Field& head, std::string_view body);
};

/// A piece of a content that is too large for one message. Body: `bytes`.
struct FileStageRequest {
  static constexpr Operation k_operation = Operation::file_stage;
  using Answer = FileStageAnswer;

  std::string staging;  ///< name of the content
  std::string path;     ///< of the file that it is for
  bool first = false;
  std::string_view bytes{};

  [[nodiscard]] nlohmann::json to_json() const;
  static FileStageRequest from(const Field& head, std::string_view body);
};

struct FileAbandonAnswer {
  [[nodiscard]] static Frame to_frame();
};

/// Ends a copy or drops a staged content.
struct FileAbandonRequest {
  static constexpr Operation k_operation = Operation::file_abandon;
  using Answer = FileAbandonAnswer;

  std::string staging;

  [[nodiscard]] nlohmann::json to_json() const;
  static FileAbandonRequest from(const Field& head, std::string_view body);
};

}  // namespace dockbridge::wire
