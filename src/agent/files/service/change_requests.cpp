#include "agent/files/service/change_requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::agent {

namespace {

// The list of a set's changes and their diffs share one body.
constexpr std::size_t k_max_set_path_bytes = 256 * 1024;
constexpr std::size_t k_max_set_diff_bytes = 256 * 1024;
constexpr std::size_t k_max_set_notes = 3;
constexpr std::size_t k_max_set_note_bytes = 200;

wire::ChangedFile message_of(ChangeAnswer change) {
  wire::ChangedFile file;
  file.path = std::move(change.path);
  file.revision = std::move(change.revision);
  file.before = std::move(change.before);
  file.change = std::move(change.change);
  file.size = change.size;
  file.encoding = name_of(change.encoding);
  file.replacements.assign(change.replacements.begin(), change.replacements.end());
  file.added = change.diff.added;
  file.removed = change.diff.removed;
  file.diff = std::move(change.diff.text);
  file.was_stale = change.since.has_value();
  file.stale_changes = change.since ? std::move(change.since->text) : "";
  file.notes = std::move(change.notes);
  return file;
}

Result<wire::ChangedFile> message_of(Result<ChangeAnswer> change) {
  return change ? Result<wire::ChangedFile>(message_of(std::move(*change))) : fail(change.error());
}

/// Drops diffs and notes that would make the answer too long.
wire::ChangedFiles bounded(std::vector<ChangeAnswer> changes) {
  wire::ChangedFiles answer;
  std::size_t diff_bytes = 0;
  for (ChangeAnswer& change : changes) {
    wire::ChangedFile file = message_of(std::move(change));
    if (diff_bytes + file.diff.size() > k_max_set_diff_bytes) {
      file.diff.clear();
    }
    diff_bytes += file.diff.size();
    file.notes.resize(std::min(file.notes.size(), k_max_set_notes));
    for (std::string& note : file.notes) {
      note = printable_line(note, k_max_set_note_bytes);
    }
    answer.files.push_back(std::move(file));
  }
  return answer;
}

}  // namespace

Result<wire::ChangedFile> write_file(const FileSpace& space, FileChanger& changer,
                                     const wire::FileWriteRequest& request) {
  return message_of(request.staging ? changer.write_staged(space, request.change, request.content)
                                    : changer.write(space, request.change, request.content));
}

Result<wire::ChangedFile> edit_file(const FileSpace& space, FileChanger& changer,
                                    const wire::FileEditRequest& request) {
  return message_of(changer.edit(space, request.change, request.edits));
}

Result<wire::ChangedFiles> edit_files(const FileSpace& space, FileChanger& changer,
                                      const wire::FileEditSetRequest& request) {
  std::size_t path_bytes = 0;
  for (const wire::FileEdits& file : request.files) {
    path_bytes += file.path.size();
  }
  if (request.files.size() > wire::k_max_set_files || path_bytes > k_max_set_path_bytes) {
    return fail(ErrorCode::too_many_files,
                fmt::format("Too many files: {} of at most {}", request.files.size(), wire::k_max_set_files),
                "Edit fewer files in one call");
  }
  auto changes = changer.edit_all(space, request);
  return changes ? Result<wire::ChangedFiles>(bounded(std::move(*changes))) : fail(changes.error());
}

Result<wire::ChangedFile> undo_change(const FileSpace& space, FileChanger& changer,
                                      const wire::FileUndoRequest& request) {
  return message_of(
      changer.undo(space, request.change, request.change_id.empty() ? std::nullopt : std::optional(request.change_id)));
}

Result<wire::FileStageAnswer> stage_content(const FileSpace& space, FileChanger& changer,
                                            const wire::FileStageRequest& request) {
  const auto staged = changer.stage(space, request.path, request.bytes, request.first);
  return staged ? Result<wire::FileStageAnswer>(wire::FileStageAnswer{}) : fail(staged.error());
}

}  // namespace dockbridge::agent
