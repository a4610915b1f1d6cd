#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/seen_revisions.hpp"
#include "util/clock.hpp"
#include "wire/file_change_messages.hpp"
#include "wire/file_messages.hpp"
#include "wire/file_read_messages.hpp"
#include "wire/file_search_messages.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"

namespace dockbridge::sandbox {

class Sandbox;

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
    Result<Piece> checked_piece(wire::FileNextAnswer answer);
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
  /// Time that the agent may take for an answer, with a disk that has to wake up and a busy machine.
  static constexpr milliseconds k_patience{60'000};

  /// Sends a request and reads the answer.
  template <typename Request>
  Result<typename Request::Answer> exchange(const Request& request, const CallLimit& limit,
                                            milliseconds patience = k_patience) {
    auto message = wire::outgoing(request);
    auto frame = ask(std::move(message.head), message.body(), is_repeatable(request), patience, limit);
    return frame ? believed(wire::message_from<typename Request::Answer>(frame->head, ErrorCode::protocol_violation,
                                                                         std::move(frame->body)))
                 : fail(frame.error());
  }
  template <typename Request>
  static bool is_repeatable(const Request& /*request*/) {
    return wire::properties_of(Request::k_operation).repeatable;
  }
  static bool is_repeatable(const EditSet& set) { return set.preview; }

  /// After a lost connection, a request is sent again if it is `repeatable`.
  Result<wire::Frame> ask(nlohmann::json head, std::string_view body, bool repeatable, milliseconds patience,
                          const CallLimit& limit);
  /// An answer that cannot be understood ends the connection.
  template <typename Value>
  Result<Value> believed(Result<Value> value) {
    return value ? std::move(value) : reject(value.error());
  }
  tl::unexpected<Error> reject(const Error& violation);
  /// The violation of an answer whose field does not fit the request.
  static Error malformed(const char* field);

  /// With an owner, the file counts as read by that owner. `about`, if given, receives the properties of the file.
  Result<Download> open_download(const std::string& path, const std::optional<std::string>& owner, WholeFile* about,
                                 const CallLimit& limit);
  /// Notes the outcome of a change.
  Result<ChangedFile> concluded(const ChangeRequest& request, Result<ChangedFile> changed);
  /// Tells how to recognize the file as it was before a change.
  std::string revision_hint(const ChangeRequest& request);

  Sandbox& m_sandbox;
  std::string m_root;
  SeenRevisions m_revisions;
};

}  // namespace dockbridge::sandbox
