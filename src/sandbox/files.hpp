#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/download.hpp"
#include "sandbox/file_calls.hpp"
#include "sandbox/upload.hpp"
#include "util/clock.hpp"
#include "wire/file_change_messages.hpp"
#include "wire/file_messages.hpp"
#include "wire/file_read_messages.hpp"
#include "wire/file_search_messages.hpp"

namespace dockbridge::sandbox {

using wire::ChangedFile;
using wire::ChangeRequest;
using wire::FileEdits;
using wire::FileEntry;
using wire::FileGrepRequest;
using wire::FileGrepResult;
using wire::FileKind;
using wire::FileListing;
using wire::FoundLine;
using wire::NewContent;
using wire::SearchTotals;
using wire::TextEdit;
using EditSet = wire::FileEditSetRequest;
using FoundInFile = wire::FoundFile;
using GlobRequest = wire::FileGlobRequest;
using ListRequest = wire::FileListRequest;
using ReadFile = wire::FileReadAnswer;
using ReadRequest = wire::FileReadRequest;
using ScaledImage = wire::FileImageAnswer;

/// A whole file, read from one open file.
struct WholeFile {
  FileKind kind = FileKind::binary;
  std::string type;  ///< as in ReadFile
  std::string revision;
  std::string bytes;
};

/// The container's files. Any thread may call; `limit` bounds every request. Paths are absolute in the container.
/// Errors of the agent are passed on: `no_such_file`, `not_read`, `file_changed` and so on.
class Files {
 public:
  /// `root`: the directory beneath which all paths must be; empty: no limit.
  Files(AgentLink& link, std::string workdir, std::string root)
      : m_workdir(std::move(workdir)), m_calls(link, std::move(root)) {}

  /// Start of relative paths: the workdir, or the root if the workdir is not beneath it.
  [[nodiscard]] const std::string& base() const;

  Result<ReadFile> read(const ReadRequest& request, const CallLimit& limit);
  /// Returns the bytes unchanged, and marks the file as read by `owner`. Error `too_large` beyond `max_bytes`.
  Result<WholeFile> whole(const std::string& path, const std::string& owner, std::uint64_t max_bytes,
                          const CallLimit& limit);
  /// The image with at most `max_side` pixels on its longer side. Marks the file as read by `owner`.
  Result<ScaledImage> scaled_image(const std::string& path, const std::string& owner, std::uint32_t max_side,
                                   const CallLimit& limit);
  /// Waits until the file's time differs from `modified_at_ms` (0: the file did not exist). False after `timeout`.
  Result<bool> await_change(const std::string& path, std::int64_t modified_at_ms, milliseconds timeout,
                            const CallLimit& limit);
  // The limit's stop token does not interrupt a change that was sent, because the caller must learn its outcome.
  Result<ChangedFile> write(const ChangeRequest& request, const NewContent& content, const CallLimit& limit = {});
  Result<ChangedFile> edit(const ChangeRequest& request, const std::vector<TextEdit>& edits,
                           const CallLimit& limit = {});
  /// The changed files in their order. A preview has the changes that would be made.
  Result<std::vector<ChangedFile>> edit_all(const EditSet& set, const CallLimit& limit = {});
  /// Restores the content before a change; an empty `change` means the newest one.
  Result<ChangedFile> undo(const ChangeRequest& request, const std::string& change, const CallLimit& limit = {});

  Result<FileListing> list(const ListRequest& request, milliseconds patience, const CallLimit& limit);
  Result<FileListing> glob(const GlobRequest& request, milliseconds patience, const CallLimit& limit);
  Result<FileGrepResult> grep(const FileGrepRequest& request, milliseconds patience, const CallLimit& limit);

  Upload upload(const std::string& path) { return {m_calls, path}; }
  Result<Download> download(const std::string& path, const CallLimit& limit);

 private:
  std::string m_workdir;
  FileCalls m_calls;
};

}  // namespace dockbridge::sandbox
