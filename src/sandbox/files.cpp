#include "sandbox/files.hpp"

#include <fmt/format.h>

#include <utility>

#include "util/text.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::sandbox {

namespace {

constexpr std::size_t k_upload_piece_bytes = 1024 * 1024;

}  // namespace

const std::string& Files::base() const {
  const std::string& root = m_calls.root();
  const bool is_beneath = root.empty() || m_workdir == root || m_workdir.starts_with(root + "/");
  return is_beneath ? m_workdir : root;
}

Result<ReadFile> Files::read(const ReadRequest& request, const CallLimit& limit) {
  auto file = m_calls.exchange(request, limit);
  if (file) {
    m_calls.remember(request.owner, request.path, file->revision);
  }
  return file;
}

Result<bool> Files::await_change(const std::string& path, std::int64_t modified_at_ms, milliseconds timeout,
                                 const CallLimit& limit) {
  const auto answer =
      m_calls.ask(wire::to_json(wire::WatchRequest{path, modified_at_ms, timeout}), {},
                  wire::properties_of(wire::Operation::file_watch).repeatable, timeout + k_file_patience, limit);
  if (!answer) {
    return fail(answer.error());
  }
  const auto watched =
      m_calls.believed(wire::message_from<wire::WatchAnswer>(answer->head, ErrorCode::protocol_violation));
  return watched ? Result<bool>(watched->changed) : fail(watched.error());
}

Result<ChangedFile> Files::write(const ChangeRequest& request, const NewContent& content, const CallLimit& limit) {
  if (content.bytes.size() <= wire::k_max_content_at_once) {
    return m_calls.concluded(request, m_calls.exchange(wire::FileWriteRequest{request, content}, limit.without_stop()));
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
  return m_calls.concluded(request, m_calls.exchange(wire::FileEditRequest{request, edits}, limit.without_stop()));
}

Result<std::vector<ChangedFile>> Files::edit_all(const EditSet& set, const CallLimit& limit) {
  auto changed = m_calls.exchange(set, set.preview ? limit : limit.without_stop());
  if (changed && changed->files.size() > set.files.size()) {
    changed = m_calls.reject(malformed("changes"));
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
  return m_calls.exchange(wire::FileImageRequest{path, owner, max_side}, limit);
}

Result<ChangedFile> Files::undo(const ChangeRequest& request, const std::string& change_id, const CallLimit& limit) {
  return m_calls.concluded(request, m_calls.exchange(wire::FileUndoRequest{request, change_id}, limit.without_stop()));
}

Result<FileListing> Files::list(const ListRequest& request, milliseconds patience, const CallLimit& limit) {
  auto listing = m_calls.exchange(request, limit, patience);
  return listing && listing->entries.size() > request.max ? m_calls.reject(malformed("body")) : std::move(listing);
}

Result<FileListing> Files::glob(const GlobRequest& request, milliseconds patience, const CallLimit& limit) {
  auto listing = m_calls.exchange(request, limit, patience);
  return listing && listing->entries.size() > request.max ? m_calls.reject(malformed("body")) : std::move(listing);
}

Result<FileGrepResult> Files::grep(const FileGrepRequest& request, milliseconds patience, const CallLimit& limit) {
  return m_calls.exchange(request, limit, patience);
}

Result<Download> Files::download(const std::string& path, const CallLimit& limit) {
  return Download::open(m_calls, path, std::nullopt, limit);
}

Result<WholeFile> Files::whole(const std::string& path, const std::string& owner, std::uint64_t max_bytes,
                               const CallLimit& limit) {
  auto download = Download::open(m_calls, path, owner, limit);
  if (!download) {
    return fail(download.error());
  }
  if (download->size() > max_bytes) {
    return fail(ErrorCode::too_large, fmt::format("File is too large: {}", human_bytes(download->size())),
                "Read a part of it with file_read");
  }
  WholeFile file{download->content()->kind, download->content()->type, "", std::string(download->size(), '\0')};
  while (true) {
    const auto piece = download->next(limit);
    if (!piece) {
      return fail(piece.error());
    }
    if (!*piece) {
      break;
    }
    file.bytes.replace((*piece)->offset, (*piece)->bytes.size(), (*piece)->bytes);
  }
  file.revision = download->revision();
  return file;
}

}  // namespace dockbridge::sandbox
