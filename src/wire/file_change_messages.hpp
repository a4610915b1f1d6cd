#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/codec.hpp"
#include "wire/file_messages.hpp"
#include "wire/operation.hpp"
#include "wire/text_format.hpp"

namespace dockbridge::wire {

// Requests that change files.

/// Edits of one request, in all its files.
inline constexpr std::size_t k_max_edits = 1000;
/// A content up to this size is sent in one message, a larger one in pieces.
inline constexpr std::size_t k_max_content_at_once = 16ULL * 1024 * 1024;

/// The owner of a change, and the content that the owner expects in the file.
struct ChangeRequest {
  std::string path;
  std::string owner;
  std::optional<std::string> expected_revision{};  ///< or its start; nullopt means the owner's latest known revision
  bool match_is_enough = false;                    ///< an exact and unique match replaces reading the file first

  void visit(Codec& codec);
};

struct NewContent {
  std::string_view bytes;
  bool is_text = true;                 ///< UTF-8, to be stored in `encoding`
  std::optional<Encoding> encoding{};  ///< of text; nullopt means that of the file, or UTF-8 for a new file
  std::optional<unsigned> mode{};      ///< permissions; nullopt means those of the file

  void visit(Codec& codec);
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
  std::string before;  ///< revision; empty if the file is new
  std::string change;  ///< id for undoing it; empty if it cannot be undone
  std::uint64_t size = 0;
  std::string encoding;
  std::vector<std::uint64_t> replacements;  ///< of each edit
  std::uint64_t added = 0;                  ///< lines
  std::uint64_t removed = 0;
  std::string diff;
  bool was_stale = false;     ///< others had changed the file since the owner read it
  std::string stale_changes;  ///< diff of their changes, if it is known; not part of the answer to an edit set
  std::vector<std::string> notes;

  void visit(Codec& codec);
};

/// Answer to an edit set: the changes in the order of the files.
struct ChangedFiles {
  std::vector<ChangedFile> files;

  void visit(Codec& codec);
};

struct FileWriteRequest {
  static constexpr Operation k_operation = Operation::file_write;
  using Answer = ChangedFile;

  ChangeRequest change;
  NewContent content;                    ///< its bytes are the body, unless it is staged
  std::optional<std::string> staging{};  ///< token of the content that was sent in pieces

  void visit(Codec& codec);
};

struct FileEditRequest {
  static constexpr Operation k_operation = Operation::file_edit;
  using Answer = ChangedFile;

  ChangeRequest change;
  std::vector<TextEdit> edits;

  void visit(Codec& codec);
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

  void visit(Codec& codec);
};

struct FileUndoRequest {
  static constexpr Operation k_operation = Operation::file_undo;
  using Answer = ChangedFile;

  ChangeRequest change;
  std::string change_id;  ///< or the start of its digits; empty: the newest change

  void visit(Codec& codec);
};

struct FileStageAnswer {
  void visit(Codec& codec);
};

/// A piece of a content that is too large for one message.
struct FileStageRequest {
  static constexpr Operation k_operation = Operation::file_stage;
  using Answer = FileStageAnswer;

  std::string staging;  ///< token of the content
  std::string path;     ///< of the file that it is for
  bool first = false;
  std::string_view bytes{};  ///< body

  void visit(Codec& codec);
};

struct FileAbandonAnswer {
  void visit(Codec& codec);
};

/// Ends a copy or drops a staged content.
struct FileAbandonRequest {
  static constexpr Operation k_operation = Operation::file_abandon;
  using Answer = FileAbandonAnswer;

  std::string staging;

  void visit(Codec& codec);
};

}  // namespace dockbridge::wire
