#include "agent/files/change/file_changer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "util/file.hpp"
#include "util/temporary_name.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_most_diffed_bytes = 4ULL * 1024 * 1024;
constexpr DiffLimits k_diff_in_error{.context = 3, .max_bytes = 6 * 1024};

/// The content as text, in UTF-8.
Result<std::string> text_of(const FileContent& content, const std::string& path) {
  if (!content.whole) {
    return fail(ErrorCode::too_large,
                fmt::format("File is too large to edit: {}, {}", shown(path), human_bytes(content.size)),
                "Change it with a command, for example sed -i");
  }
  if (!content.page) {
    return fail(ErrorCode::is_binary, "Not a text file: " + shown(path),
                "Write it as a whole with file_write and encoding: base64, or use a command");
  }
  return decode(*content.whole, content.page->encoding);
}

}  // namespace

std::string FileChanger::previewer(const std::string& owner, const EditSetMode& mode) {
  return owner + (mode.is_replacement ? "\n(preview)" : "\n(preview of edits)");
}

FileChanger::FileChanger(int state_fd, ContentStore store, bool may_prepare)
    : m_state_fd(state_fd), m_writer(state_fd, std::move(store)), m_history(state_fd), m_may_prepare(may_prepare) {}

Result<FileChanger> FileChanger::open(int state_fd, bool may_prepare) {
  auto store = ContentStore::open(state_fd);
  if (!store) {
    return fail(store.error());
  }
  WriteJournal::recover(state_fd, *store);
  return FileChanger(state_fd, std::move(*store), may_prepare);
}

void FileChanger::note_seen(const std::string& owner, const std::string& path, const std::string& revision,
                            std::optional<std::string> whole) {
  run_deferred_work();
  if (revision.empty()) {
    return;
  }
  m_history.note_seen(owner, path, revision);
  if (whole) {
    remember(revision, std::move(*whole));
  }
}

void FileChanger::remember(const std::string& revision, std::string content) {
  if (content.size() <= ContentStore::k_most_remembered_bytes) {
    m_deferred.revision = revision;
    m_deferred.content = std::move(content);
  }
}

void FileChanger::run_deferred_work() {
  const DeferredWork deferred = std::exchange(m_deferred, {});
  if (!deferred.revision.empty()) {
    // Without it a later conflict is still noticed, only the difference cannot be shown.
    (void)m_writer.store().put(deferred.revision, deferred.content);
  }
  if (deferred.swept) {
    remove_orphans(deferred.swept.get());
  }
  if (deferred.directory) {
    m_writer.spare().prepare(deferred.directory.get());
  }
}

Result<std::string> FileChanger::expected_revision(const ChangeRequest& request, const CurrentFile& current,
                                                   const EditSetMode* mode) const {
  const std::string& revision = current.content.revision;
  const auto seen = m_history.last_seen(request.owner, current.place.path);
  if (request.expected_revision) {
    for (const std::string& known : {revision, seen.value_or("")}) {
      if (wire::is_revision_start(*request.expected_revision) && known.starts_with(*request.expected_revision)) {
        return known;
      }
    }
    return *request.expected_revision;
  }
  const auto previewed =
      mode != nullptr ? m_history.last_seen(previewer(request.owner, *mode), current.place.path) : std::nullopt;
  if ((mode != nullptr && mode->preview) || previewed == revision) {
    return revision;
  }
  if (seen) {
    return *seen;
  }
  if (previewed) {
    return fail(ErrorCode::file_changed, "File has changed since the preview: " + shown(current.place.path),
                "Call with preview: true again");
  }
  return fail(ErrorCode::not_read, "File has not been read: " + shown(current.place.path),
              mode != nullptr && mode->is_replacement
                  ? "Call with preview: true first"
                  : "Read it with file_read first, or give its revision as expectedRevision");
}

std::optional<Diff> FileChanger::changes_since(const std::string& revision, const CurrentFile& current) {
  const auto before = m_writer.store().get(revision, k_most_diffed_bytes);
  const auto encoding = before ? detect_encoding(*before) : std::nullopt;
  if (!encoding || !current.content.page || !current.content.whole ||
      current.content.whole->size() > k_most_diffed_bytes) {
    return std::nullopt;
  }
  const auto then = decode(*before, *encoding);
  const auto now = decode(*current.content.whole, current.content.page->encoding);
  return then && now ? std::optional(unified_diff(*then, *now, current.place.path, k_diff_in_error)) : std::nullopt;
}

Result<void> FileChanger::expect_unchanged(const ChangeRequest& request, const CurrentFile& current) {
  if (!current.file) {
    return request.expected_revision && !request.expected_revision->empty()
               ? fail(ErrorCode::file_changed, "File was removed: " + shown(current.place.path),
                      "Leave expectedRevision out to create it")
               : Result<void>();
  }
  const auto expected = expected_revision(request, current);
  if (!expected) {
    return fail(expected.error());
  }
  if (*expected == current.content.revision) {
    return {};
  }
  return fail(changed_since_read(*expected, current));
}

Error FileChanger::changed_since_read(const std::string& revision, const CurrentFile& current) {
  const auto since = changes_since(revision, current);
  return {ErrorCode::file_changed,
          fmt::format("File has changed since it was read: {}, revision {} now{}", shown(current.place.path),
                      current.content.revision.substr(0, wire::k_short_digits),
                      since ? ". What others have changed:\n" + since->text : std::string()),
          "Read it again, then repeat the change"};
}

FileChange FileChanger::keep_before(const CurrentFile& current, ChangeAnswer& answer) {
  FileChange change{FileHistory::new_change_id(), current.place.path, "", "", 0};
  if (!current.file) {
    return change;
  }
  change.before = current.content.revision;
  change.mode = current.file->info.st_mode & 07777;
  Result<void> kept;
  if (current.content.whole) {
    kept = m_writer.store().put(change.before, *current.content.whole);
  } else {
    const auto fd = current.file->open_for_reading();
    kept = fd ? m_writer.store().put_file(change.before, fd->get(), current.content.size) : fail(fd.error());
  }
  if (!kept) {
    change.id.clear();
    answer.notes.push_back("the earlier content could not be kept, so this change cannot be undone: " +
                           kept.error().message);
  }
  return change;
}

Result<ChangeAnswer> FileChanger::commit(const ChangeRequest& request, const CurrentFile& current,
                                         const NewBytes& content, const std::optional<mode_t>& mode,
                                         ChangeAnswer answer, TemporaryFile* staged) {
  FileChange change = keep_before(current, answer);
  change.after = content.revision();
  const auto notes = staged != nullptr ? m_writer.write_staged(current, *staged, content, mode)
                                       : m_writer.write(current, content, mode);
  if (!notes) {
    return fail(notes.error());
  }
  answer.notes.insert(answer.notes.end(), notes->begin(), notes->end());
  if (const auto bytes = content.bytes()) {
    remember(content.revision(), std::string(*bytes));
  }
  if (current.file) {
    m_deferred.replaced.reset(::fcntl(current.file->handle.get(), F_DUPFD_CLOEXEC, 0));
    if (m_may_prepare) {
      // Another descriptor: a copy of this one would keep the lock on the directory.
      m_deferred.directory.reset(::openat(current.place.directory.get(), ".", O_PATH | O_CLOEXEC));
    }
  }
  if (m_sweep.is_due(current.place.directory.get(), Clock::now())) {
    m_deferred.swept.reset(::openat(current.place.directory.get(), ".", O_PATH | O_CLOEXEC));
  }
  if (content.size() > k_most_revised_bytes) {
    change.id.clear();
    answer.notes.push_back(
        fmt::format("over {} a file is too large to be changed by these tools, so this cannot be undone",
                    human_bytes(k_most_revised_bytes)));
  }
  answer.size = content.size();
  record(request, std::move(change), answer);
  return answer;
}

void FileChanger::record(const ChangeRequest& request, FileChange change, ChangeAnswer& answer) {
  answer.path = change.path;
  answer.before = change.before;
  answer.revision = change.after;
  m_history.note_seen(request.owner, change.path, change.after);
  if (!change.id.empty() && m_history.note_change(change)) {
    answer.change = std::move(change.id);
  }
}

Encoding FileChanger::encoding_for(const NewContent& content, const CurrentFile& current) {
  const bool has_one = current.content.page && current.content.size > 0;
  return content.encoding.value_or(has_one ? current.content.page->encoding : Encoding::utf8);
}

Result<ChangeAnswer> FileChanger::write(const FileSpace& space, const ChangeRequest& request,
                                        const NewContent& content) {
  run_deferred_work();
  const auto current = look_up(space, request.path, Absent::is_to_be_made);
  if (!current) {
    return fail(current.error());
  }
  if (auto unchanged = expect_unchanged(request, *current); !unchanged) {
    return fail(unchanged.error());
  }
  ChangeAnswer answer;
  if (!content.is_text) {
    return commit(request, *current, NewBytes(content.bytes), content.mode, std::move(answer));
  }
  answer.encoding = encoding_for(content, *current);
  if (answer.encoding == Encoding::utf8) {
    return commit(request, *current, NewBytes(content.bytes), content.mode, std::move(answer));
  }
  std::string_view text = content.bytes;
  constexpr std::string_view k_mark = "\xEF\xBB\xBF";
  if (answer.encoding != Encoding::latin1 && text.starts_with(k_mark)) {
    text.remove_prefix(k_mark.size());  // the encoding has one of its own
  }
  const auto bytes = encode(text, answer.encoding);
  return bytes ? commit(request, *current, NewBytes(*bytes), content.mode, std::move(answer)) : fail(bytes.error());
}

Result<FileChanger::PreparedEdit> FileChanger::prepare_edit(const FileSpace& space, const ChangeRequest& request,
                                                            std::span<const TextEdit> edits, const EditSetMode& mode,
                                                            LockedDirectories* locked) {
  auto current = look_up(space, request.path, Absent::is_an_error, locked);
  if (!current) {
    return fail(current.error());
  }
  auto expected = expected_revision(request, *current, &mode);
  if (!expected && mode.is_replacement) {
    // A file without a match is not part of the replacement, whether it was read or not.
    const auto unseen = text_of(current->content, current->place.path);
    const auto tried = unseen ? apply_edits(*unseen, edits) : fail(unseen.error());
    if (!tried) {
      return fail(tried.error());
    }
  }
  const bool is_unread = !expected && request.match_is_enough;
  const auto unread = is_unread ? expected.error() : Error{};
  if (is_unread) {
    expected = current->content.revision;
  }
  const auto text = expected ? text_of(current->content, current->place.path) : fail(expected.error());
  if (!text) {
    return fail(text.error());
  }
  const bool is_stale = *expected != current->content.revision;
  if (is_stale && request.expected_revision) {
    return fail(changed_since_read(*expected, *current));  // an explicit expectedRevision is a condition
  }
  auto edited = apply_edits(*text, edits);
  if (!edited) {
    // That others have been there is the better explanation.
    const auto since = is_stale ? changes_since(*expected, *current) : std::nullopt;
    Error error = edited.error();
    if (is_stale) {
      error.message += "\nThe file has changed since it was read" +
                       (since ? ". What others have changed:\n" + since->text : std::string());
    }
    return fail(std::move(error));
  }
  const bool changes_several = std::any_of(edited->replacements.begin(), edited->replacements.end(),
                                           [](std::size_t count) { return count > 1; });
  if (is_unread && changes_several) {
    return fail(unread);
  }
  if (is_stale && changes_several) {
    return fail(changed_since_read(*expected, *current));
  }
  const Encoding encoding = current->content.page->encoding;
  auto bytes = encode(edited->text, encoding);
  if (!bytes) {
    return fail(bytes.error());
  }
  ChangeAnswer answer;
  answer.encoding = encoding;
  answer.replacements = std::move(edited->replacements);
  answer.diff = unified_diff(*text, edited->text, current->place.path);
  if (is_stale) {
    answer.since = changes_since(*expected, *current).value_or(Diff{});
  }
  return PreparedEdit{std::move(*current), std::move(*bytes), std::move(answer)};
}

Result<ChangeAnswer> FileChanger::edit(const FileSpace& space, const ChangeRequest& request,
                                       std::span<const TextEdit> edits) {
  run_deferred_work();
  auto prepared = prepare_edit(space, request, edits);
  return prepared
             ? commit(request, prepared->current, NewBytes(prepared->bytes), std::nullopt, std::move(prepared->answer))
             : fail(prepared.error());
}

Result<ChangeAnswer> FileChanger::undo(const FileSpace& space, const ChangeRequest& request,
                                       const std::optional<std::string>& change) {
  run_deferred_work();
  const auto current = look_up(space, request.path, Absent::is_fine);
  if (!current) {
    return fail(current.error());
  }
  const auto found = m_history.find_change(current->place.path, change);
  if (!found) {
    return fail(ErrorCode::no_such_change, "No change to undo: " + shown(request.path),
                "Only changes by these tools can be undone, and only the newer ones");
  }
  if (current->content.revision != found->after) {
    const auto since = current->file ? changes_since(found->after, *current) : std::nullopt;
    return fail(ErrorCode::file_changed,
                fmt::format("File has changed since {1}: {0}{2}", shown(request.path), found->id,
                            since ? ". What has changed since:\n" + since->text : std::string()),
                "Undo the later changes first, or write the content that you want");
  }
  if (found->before.empty()) {
    return remove(request, *current);
  }
  const auto kept = m_writer.store().open_content(found->before);
  const auto content = kept ? NewBytes::of_file(kept->get()) : fail(kept.error());
  if (!content) {
    return fail(content.error());
  }
  if (content->revision() != found->before) {
    return fail(ErrorCode::content_damaged, "The stored earlier content is damaged");
  }
  EncodingDetector detector;
  (void)read_pieces(kept->get(), [&](std::string_view piece) {
    detector.feed(piece);
    return Result<void>();
  });
  ChangeAnswer answer;
  answer.encoding = detector.result().value_or(Encoding::utf8);
  const auto bytes =
      detector.result() ? m_writer.store().get(found->before, k_most_diffed_bytes) : fail(ErrorCode::is_binary, "");
  const auto before = bytes ? decode(*bytes, answer.encoding) : fail(bytes.error());
  const auto now = current->content.whole && current->content.page
                       ? decode(*current->content.whole, current->content.page->encoding)
                       : Result<std::string>("");
  if (before && now) {
    answer.diff = unified_diff(*now, *before, current->place.path);
  }
  return commit(request, *current, *content, found->mode, std::move(answer));
}

/// Undoes the making of a file.
Result<ChangeAnswer> FileChanger::remove(const ChangeRequest& request, const CurrentFile& current) {
  ChangeAnswer answer;
  FileChange change = keep_before(current, answer);
  if (::unlinkat(current.place.directory.get(), current.place.name.c_str(), 0) != 0) {
    return fail(file_error(current.place.path, errno));
  }
  ::fsync(current.place.directory.get());
  answer.notes.emplace_back("the file did not exist before that change, and was removed");
  record(request, std::move(change), answer);
  return answer;
}

}  // namespace dockbridge::agent
