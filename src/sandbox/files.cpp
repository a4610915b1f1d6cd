#include "sandbox/files.hpp"

#include <fmt/format.h>

#include <utility>

#include "sandbox/sandbox.hpp"
#include "util/random.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

constexpr std::size_t k_upload_token_length = 16;
constexpr std::size_t k_upload_piece_bytes = 1024 * 1024;
constexpr std::size_t k_max_shown_path = 500;
constexpr std::size_t k_max_shown_revision = 40;

/// The error of a change that may have been made. nullopt if the change was certainly not made.
std::optional<Error> unknown_outcome(const Error& error) {
  if (!error.outcome_unknown && error.code != ErrorCode::worker_gone) {
    return std::nullopt;
  }
  Error unknown = error;
  unknown.outcome_unknown = true;
  return unknown;
}

}  // namespace

const std::string& Files::base() const {
  const std::string& workdir = m_sandbox.workdir();
  const bool is_beneath = m_root.empty() || workdir == m_root || workdir.starts_with(m_root + "/");
  return is_beneath ? workdir : m_root;
}

Result<wire::Frame> Files::ask(json head, std::string_view body, bool repeatable, milliseconds patience,
                               const CallLimit& limit) {
  wire::set_root(head, m_root);
  auto answer = m_sandbox.ask(head, body, patience, limit);
  if (!answer && answer.error().code == ErrorCode::connection_lost && repeatable) {
    answer = m_sandbox.ask(std::move(head), body, patience, limit);
  }
  return answer;
}

tl::unexpected<Error> Files::reject(const Error& violation) {
  return m_sandbox.drop_session(violation);
}

Error Files::malformed(const char* field) {
  return {ErrorCode::protocol_violation, std::string("Malformed message: ") + field};
}

Result<ReadFile> Files::read(const ReadRequest& request, const CallLimit& limit) {
  auto file = exchange(request, limit);
  if (file) {
    m_revisions.remember(request.owner, request.path, file->revision);
  }
  return file;
}

Result<bool> Files::await_change(const std::string& path, std::int64_t modified_at_ms, milliseconds timeout,
                                 const CallLimit& limit) {
  const auto answer = ask(wire::to_json(wire::WatchRequest{path, modified_at_ms, timeout}), {},
                          wire::properties_of(wire::Operation::file_watch).repeatable, timeout + k_patience, limit);
  if (!answer) {
    return fail(answer.error());
  }
  const auto watched =
      believed(wire::read_fields(answer->head, ErrorCode::protocol_violation,
                                 [](const wire::Field& head) { return wire::WatchAnswer::from_json(head); }));
  return watched ? Result<bool>(watched->changed) : fail(watched.error());
}

Result<ChangedFile> Files::concluded(const ChangeRequest& request, Result<ChangedFile> changed) {
  if (changed) {
    m_revisions.remember(request.owner, request.path, changed->revision);
    return changed;
  }
  if (const auto error = unknown_outcome(changed.error())) {
    return fail(error->with_effect(fmt::format("the change to {} may have been made, or may still be made",
                                               printable_line(request.path, k_max_shown_path)),
                                   "Read the file to check" + revision_hint(request)));
  }
  return changed;
}

std::string Files::revision_hint(const ChangeRequest& request) {
  if (request.expected_revision) {
    return "; its revision before the change was " + printable_line(*request.expected_revision, k_max_shown_revision);
  }
  const std::string seen = m_revisions.find(request.owner, request.path);
  return seen.empty() ? "" : "; the last revision you saw was " + seen.substr(0, wire::k_short_digits);
}

Result<ChangedFile> Files::write(const ChangeRequest& request, const NewContent& content, const CallLimit& limit) {
  if (content.bytes.size() <= wire::k_max_content_at_once) {
    return concluded(
        request, exchange(wire::FileWriteRequest{request, content}, content.bytes, k_patience, limit.without_stop()));
  }
  Upload pieces = upload(request.path);
  for (std::size_t at = 0; at < content.bytes.size(); at += k_upload_piece_bytes) {
    if (auto sent = pieces.append(content.bytes.substr(at, k_upload_piece_bytes), limit); !sent) {
      return fail(sent.error());
    }
  }
  return pieces.finish(request, content, limit);
}

Result<ChangedFile> Files::edit(const ChangeRequest& request, const std::vector<TextEdit>& edits,
                                const CallLimit& limit) {
  return concluded(request, exchange(wire::FileEditRequest{request, edits}, limit.without_stop()));
}

Result<std::vector<ChangedFile>> Files::edit_all(const EditSet& set, const CallLimit& limit) {
  auto changed = exchange(set, set.preview ? limit : limit.without_stop());
  if (changed && changed->files.size() > set.files.size()) {
    changed = reject(malformed("changes"));
  }
  if (changed) {
    return std::move(changed->files);
  }
  const auto error = set.preview ? std::nullopt : unknown_outcome(changed.error());
  return fail(error ? error->with_effect("all files may have been changed, or none", "Read all of the files to check")
                    : changed.error());
}

Result<ScaledImage> Files::scaled_image(const std::string& path, const std::string& owner, std::uint32_t max_side,
                                        const CallLimit& limit) {
  return exchange(wire::FileImageRequest{path, owner, max_side}, limit);
}

Result<ChangedFile> Files::undo(const ChangeRequest& request, const std::string& change_id, const CallLimit& limit) {
  return concluded(request, exchange(wire::FileUndoRequest{request, change_id}, limit.without_stop()));
}

Result<FileListing> Files::list(const ListRequest& request, milliseconds patience, const CallLimit& limit) {
  auto listing = exchange(request, {}, patience, limit);
  return listing && listing->entries.size() > request.max ? reject(malformed("body")) : std::move(listing);
}

Result<FileListing> Files::glob(const GlobRequest& request, milliseconds patience, const CallLimit& limit) {
  auto listing = exchange(request, {}, patience, limit);
  return listing && listing->entries.size() > request.max ? reject(malformed("body")) : std::move(listing);
}

Result<FileGrepResult> Files::grep(const FileGrepRequest& request, milliseconds patience, const CallLimit& limit) {
  return exchange(request, {}, patience, limit);
}

Files::Upload Files::upload(const std::string& path) {
  return {*this, path, random_token(k_upload_token_length)};
}

Files::Upload::Upload(Files& files, std::string path, std::string token)
    : m_files(&files), m_path(std::move(path)), m_token(std::move(token)) {}

Files::Upload::Upload(Upload&& other) noexcept
    : m_files(other.m_files),
      m_path(std::move(other.m_path)),
      m_token(std::exchange(other.m_token, "")),
      m_first(other.m_first) {}

Files::Upload::~Upload() {
  if (!m_token.empty() && !m_first) {
    // If this request is lost, the agent drops the content when the connection ends.
    m_files->m_sandbox.post(wire::FileAbandonRequest{m_token}.to_json());
  }
}

Result<void> Files::Upload::append(std::string_view bytes, const CallLimit& limit) {
  const bool first = std::exchange(m_first, false);
  const auto answer =
      m_files->exchange(wire::FileStageRequest{m_token, m_path, first, bytes}, bytes, k_patience, limit);
  if (answer) {
    return {};
  }
  Error error = answer.error();
  if (error.outcome_unknown) {  // of this piece; the file itself changes only at the end
    error.message += "; the file was not changed";
    error.outcome_unknown = false;
  }
  return fail(std::move(error));
}

Result<ChangedFile> Files::Upload::finish(const ChangeRequest& request, const NewContent& content,
                                          const CallLimit& limit) {
  auto changed = m_files->concluded(
      request, m_files->exchange(wire::FileWriteRequest{request, content, m_token}, limit.without_stop()));
  if (changed) {
    m_token.clear();
  }
  return changed;
}

}  // namespace dockbridge::sandbox
