#include "agent/files/change/file_changer.hpp"

#include <fmt/format.h>

#include <utility>

#include "agent/files/change/edit_set.hpp"
#include "agent/files/change/prepared_edit.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

/// The encoding in which a text is stored: the requested one, or that of the file.
Encoding encoding_for(const NewContent& content, const CurrentFile& current) {
  const bool has_one = current.content.page && current.content.size > 0;
  return content.encoding.value_or(has_one ? current.content.page->encoding : Encoding::utf8);
}

/// Encoding and diff of an undo. The diff is empty if one of the contents is not text or too large.
ChangeAnswer describe_undo(const CurrentFile& current, const std::string& before, int before_fd, ContentStore& store) {
  EncodingDetector detector;
  (void)read_pieces(before_fd, [&](std::string_view piece) {
    detector.feed(piece);
    return Result<void>();
  });
  ChangeAnswer answer;
  answer.encoding = detector.result().value_or(Encoding::utf8);
  const auto bytes = detector.result() ? store.get(before, k_max_diffed_bytes) : fail(ErrorCode::is_binary, "");
  const auto then = bytes ? decode(*bytes, answer.encoding) : fail(bytes.error());
  const auto now = current.content.whole && current.content.page
                       ? decode(*current.content.whole, current.content.page->encoding)
                       : Result<std::string>("");
  if (then && now) {
    answer.diff = unified_diff(*now, *then, current.place.path);
  }
  return answer;
}

}  // namespace

Result<FileChanger> FileChanger::open(int state_fd, bool may_prepare) {
  auto store = ContentStore::open(state_fd);
  if (!store) {
    return fail(store.error());
  }
  WriteJournal::recover(state_fd, *store);
  return FileChanger(state_fd, std::move(*store), may_prepare);
}

void FileChanger::note_seen(const std::string& owner, const std::string& path, const SeenContent& seen,
                            std::optional<std::string> whole) {
  run_deferred_work();
  if (seen.revision.empty()) {
    return;
  }
  m_committer.history().note_seen(owner, path, seen);
  if (whole) {
    m_committer.deferred().store(seen.revision, std::move(*whole));
  }
}

Result<CurrentFile> FileChanger::find_writable(const FileSpace& space, const ChangeRequest& request) {
  auto current = find_current(space, request.path, Absent::is_created);
  if (!current) {
    return current;
  }
  const auto unchanged = m_committer.guard().expect_unchanged(request, *current);
  return unchanged ? std::move(current) : fail(unchanged.error());
}

Result<ChangeAnswer> FileChanger::write(const FileSpace& space, const ChangeRequest& request,
                                        const NewContent& content) {
  run_deferred_work();
  const auto current = find_writable(space, request);
  if (!current) {
    return fail(current.error());
  }
  ChangeAnswer answer;
  answer.is_whole_write = true;
  answer.encoding = content.is_text ? encoding_for(content, *current) : Encoding::utf8;
  if (answer.encoding == Encoding::utf8) {
    return m_committer.commit(request.owner, *current, NewBytes(content.bytes), content.mode, std::move(answer));
  }
  std::string_view text = content.bytes;
  constexpr std::string_view k_mark = "\xEF\xBB\xBF";
  if (answer.encoding != Encoding::latin1 && text.starts_with(k_mark)) {
    text.remove_prefix(k_mark.size());  // `encode` writes the mark of the encoding
  }
  const auto bytes = encode(text, answer.encoding);
  return bytes ? m_committer.commit(request.owner, *current, NewBytes(*bytes), content.mode, std::move(answer))
               : fail(bytes.error());
}

Result<ChangeAnswer> FileChanger::edit(const FileSpace& space, const ChangeRequest& request,
                                       std::span<const TextEdit> edits) {
  run_deferred_work();
  auto prepared = prepare_edit(m_committer.guard(), space, request, edits);
  return prepared ? m_committer.commit(request.owner, prepared->current, NewBytes(prepared->bytes), std::nullopt,
                                       std::move(prepared->answer))
                  : fail(prepared.error());
}

Result<std::vector<ChangeAnswer>> FileChanger::edit_all(const FileSpace& space, const wire::FileEditSetRequest& set) {
  run_deferred_work();
  return EditSet(m_state_fd, m_committer, set).run(space);
}

Result<ChangeAnswer> FileChanger::undo(const FileSpace& space, const ChangeRequest& request,
                                       const std::optional<std::string>& change) {
  run_deferred_work();
  const auto current = find_current(space, request.path, Absent::is_fine);
  if (!current) {
    return fail(current.error());
  }
  const auto found = m_committer.history().find_change(current->place.path, change);
  if (!found) {
    return fail(ErrorCode::no_such_change, "No change to undo: " + displayed_path(request.path));
  }
  if (current->content.revision != found->after) {
    const auto since = current->file ? m_committer.guard().changes_since(found->after, *current) : std::nullopt;
    return fail(ErrorCode::file_changed,
                fmt::format("File has changed since {1}: {0}{2}", displayed_path(request.path), found->id,
                            since ? ". What has changed since:\n" + since->text : std::string()),
                "Undo the later changes first, or write the content that you want");
  }
  if (found->before.empty()) {
    return m_committer.remove(request.owner, *current);
  }
  ContentStore& store = m_committer.writer().store();
  const auto kept = store.open_content(found->before);
  const auto content = kept ? NewBytes::of_file(kept->get()) : fail(kept.error());
  if (!content) {
    return fail(content.error());
  }
  if (content->revision() != found->before) {
    return fail(ErrorCode::content_damaged, "The stored earlier content is damaged");
  }
  return m_committer.commit(request.owner, *current, *content, found->mode,
                            describe_undo(*current, found->before, kept->get(), store));
}

Result<void> FileChanger::stage(const FileSpace& space, const std::string& path, std::string_view bytes, bool first) {
  if (first) {
    abandon_staged();
    auto staged = StagedContent::create(space, path, m_state_fd);
    if (!staged) {
      return fail(staged.error());
    }
    m_staged = std::move(*staged);
  }
  if (!m_staged) {
    return fail(ErrorCode::nothing_staged, "No content is staged for this part");
  }
  return m_staged->append(bytes);
}

Result<ChangeAnswer> FileChanger::write_staged(const FileSpace& space, const ChangeRequest& request,
                                               const NewContent& content) {
  run_deferred_work();
  const auto staged = std::exchange(m_staged, nullptr);
  if (!staged) {
    return fail(ErrorCode::nothing_staged, "No content is staged");
  }
  const auto current = find_writable(space, request);
  if (!current) {
    return fail(current.error());
  }
  if (current->place.path != staged->path()) {
    return fail(ErrorCode::file_changed, "Path leads to another file than before: " + displayed_path(request.path));
  }
  if (content.is_text && encoding_for(content, *current) != Encoding::utf8) {
    return fail(ErrorCode::too_large, "A text of this size can be stored only as UTF-8",
                "Pass encoding: utf-8, or the encoded bytes as base64");
  }
  ChangeAnswer answer;
  answer.is_whole_write = true;
  const auto bytes = NewBytes::of_file(staged->fd());
  return bytes ? m_committer.commit(request.owner, *current, *bytes, content.mode, std::move(answer),
                                    staged->beside_target())
               : fail(bytes.error());
}

}  // namespace dockbridge::agent
