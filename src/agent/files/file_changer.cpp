#include "agent/files/file_changer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "agent/files/revision.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

/// Contents up to this size are kept when they are read, so that later changes by others can be shown.
constexpr std::size_t k_most_remembered_bytes = 1024 * 1024;
constexpr std::size_t k_most_diffed_bytes = 4ULL * 1024 * 1024;
constexpr DiffLimits k_diff_in_error{.context = 3, .max_bytes = 6 * 1024};
constexpr milliseconds k_lock_patience{5000};
constexpr milliseconds k_lock_interval{5};

std::string shown(const std::string& path) {
  return printable_line(path, 300);
}

/// Two of our changes in one directory do not get into each other's way. Others are noticed, not kept out.
Result<void> lock(const FilePlace& place) {
  const auto deadline = Deadline::after(k_lock_patience);
  while (::flock(place.directory.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return {};  // a file system without locks
    }
    if (deadline.passed()) {
      return fail("directory_locked",
                  fmt::format("another process has locked the directory of '{}'", shown(place.path)),
                  "Try again when it has finished");
    }
    std::this_thread::sleep_for(k_lock_interval);
  }
  return {};
}

Result<void> write_over(int fd, std::string_view bytes, const std::string& path) {
  const auto size = static_cast<off_t>(bytes.size());
  // Room first: afterwards there is no way back.
  if (size > 0 && ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    return fail(file_error(path, errno));
  }
  for (off_t at = 0; at < size;) {
    const ssize_t written = ::pwrite(fd, bytes.data() + at, bytes.size() - static_cast<std::size_t>(at), at);
    if (written < 0 && errno != EINTR) {
      return fail(file_error(path, errno));
    }
    at += std::max<ssize_t>(written, 0);
  }
  if (::ftruncate(fd, size) != 0 || ::fsync(fd) != 0) {
    return fail(file_error(path, errno));
  }
  return {};
}

/// The content as text, in UTF-8.
Result<std::string> text_of(const FileContent& content, const std::string& path) {
  if (!content.whole) {
    return fail("too_large",
                fmt::format("'{}' has {}, too much to be edited here", shown(path), human_bytes(content.size)),
                "Change it with a command, for example sed -i");
  }
  if (!content.page) {
    return fail("is_binary", fmt::format("'{}' is not text", shown(path)),
                "Write it as a whole with file_write and encoding: base64, or use a command");
  }
  return decode(*content.whole, content.page->encoding);
}

}  // namespace

FileChanger::FileChanger(int state_fd, ContentStore store)
    : m_state_fd(state_fd), m_store(std::move(store)), m_history(state_fd) {}

Result<FileChanger> FileChanger::open(int state_fd) {
  auto store = ContentStore::open(state_fd);
  if (!store) {
    return fail(store.error());
  }
  WriteJournal::recover(state_fd, *store);
  return FileChanger(state_fd, std::move(*store));
}

Result<WriteJournal*> FileChanger::journal() {
  if (!m_journal) {
    auto made = WriteJournal::open(m_state_fd);
    if (!made) {
      return fail(made.error());
    }
    m_journal = std::make_unique<WriteJournal>(std::move(*made));
  }
  return m_journal.get();
}

void FileChanger::note_seen(const std::string& owner, const std::string& path, const FileContent& content) {
  if (content.revision.empty()) {
    return;
  }
  m_history.note_seen(owner, path, content.revision);
  if (content.whole) {
    remember(*content.whole);
  }
}

void FileChanger::remember(std::string_view content) {
  if (content.size() <= k_most_remembered_bytes) {
    // Without it a later conflict is still noticed, only the difference cannot be shown.
    (void)m_store.put(revision_of(content), content);
  }
}

Result<FileChanger::Current> FileChanger::look_up(const FileSpace& space, const std::string& path, Absent absent) {
  Current current;
  auto found = space.find(path);
  if (!found && (found.error().code != "no_such_file" || absent == Absent::is_an_error)) {
    return fail(found.error());
  }
  if (found) {
    if (auto regular = expect_regular(*found); !regular) {
      return fail(regular.error());
    }
    current.file = std::move(*found);
  }
  auto place = current.file ? space.place_of(*current.file) : space.place_for(path, absent == Absent::is_to_be_made);
  if (!place) {
    return fail(place.error());
  }
  current.place = std::move(*place);
  if (auto locked = lock(current.place); !locked) {
    return fail(locked.error());
  }
  if (!current.file) {
    return current;
  }
  // Again, as it is now that nobody else of us changes it.
  auto locked = space.find(current.place.path);
  if (!locked) {
    return fail(locked.error());
  }
  current.file = std::move(*locked);
  if (auto regular = expect_regular(*current.file); !regular) {
    return fail(regular.error());
  }
  if (auto writable = expect_writable(*current.file); !writable) {
    return fail(writable.error());
  }
  if (static_cast<std::uint64_t>(current.file->info.st_size) > k_most_revised_bytes) {
    return fail("too_large",
                fmt::format("'{}' has {}; these tools change files of up to {}", shown(path),
                            human_bytes(static_cast<std::uint64_t>(current.file->info.st_size)),
                            human_bytes(k_most_revised_bytes)),
                "Change or replace it with a command");
  }
  auto content = read_content(*current.file, {.limit = 0});
  if (!content) {
    return fail(content.error());
  }
  current.content = std::move(*content);
  return current;
}

Result<std::string> FileChanger::expected_revision(const ChangeRequest& request, const Current& current) const {
  const auto known = request.expected ? request.expected : m_history.last_seen(request.owner, current.place.path);
  if (known) {
    return *known;
  }
  return fail("not_read", fmt::format("'{}' exists, and has not been read yet", shown(current.place.path)),
              "Read it with file_read first, or give its revision as expectedRevision");
}

std::optional<Diff> FileChanger::changes_since(const std::string& revision, const Current& current) const {
  const auto before = m_store.get(revision, k_most_diffed_bytes);
  const auto encoding = before ? detect_encoding(*before) : std::nullopt;
  if (!encoding || !current.content.page || !current.content.whole ||
      current.content.whole->size() > k_most_diffed_bytes) {
    return std::nullopt;
  }
  const auto then = decode(*before, *encoding);
  const auto now = decode(*current.content.whole, current.content.page->encoding);
  return then && now ? std::optional(unified_diff(*then, *now, current.place.path, k_diff_in_error)) : std::nullopt;
}

Result<void> FileChanger::expect_unchanged(const ChangeRequest& request, const Current& current) const {
  if (!current.file) {
    return request.expected && !request.expected->empty()
               ? fail("file_changed", fmt::format("'{}' is not there any more", shown(current.place.path)),
                      "Leave expectedRevision out to make it anew")
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

Error FileChanger::changed_since_read(const std::string& revision, const Current& current) const {
  const auto since = changes_since(revision, current);
  return {"file_changed",
          fmt::format("'{}' has changed since it was read; it has revision {} now{}", shown(current.place.path),
                      current.content.revision, since ? ". What others have changed:\n" + since->text : std::string()),
          "Read it again, then repeat the change"};
}

FileChange FileChanger::keep_before(const Current& current, ChangeAnswer& answer) {
  FileChange change{FileHistory::new_change_id(), current.place.path, "", "", 0};
  if (!current.file) {
    return change;
  }
  change.before = current.content.revision;
  change.mode = current.file->info.st_mode & 07777;
  Result<void> kept;
  if (current.content.whole) {
    kept = m_store.put(change.before, *current.content.whole);
  } else {
    const auto fd = current.file->open_for_reading();
    kept = fd ? m_store.put_file(change.before, fd->get(), current.content.size) : fail(fd.error());
  }
  if (!kept) {
    change.id.clear();
    answer.notes.push_back("the earlier content could not be kept, so this change cannot be undone: " +
                           kept.error().message);
  }
  return change;
}

Result<void> FileChanger::write_in_place(const Current& current, std::string_view bytes,
                                         const std::optional<mode_t>& mode, ChangeAnswer& answer) {
  const std::string& path = current.place.path;
  const auto journal_of_writes = journal();
  if (!journal_of_writes) {
    return fail(journal_of_writes.error());
  }
  const Fd file(::open(fmt::format("/proc/self/fd/{}", current.file->handle.get()).c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) {
    return fail(file_error(path, errno));
  }
  // Both have to be there for whoever comes after a crash.
  const std::string after = revision_of(bytes);
  const auto kept = m_store.open_content(current.content.revision).and_then([&](const Fd& /*is there*/) {
    return m_store.put(after, bytes);
  });
  if (!kept) {
    return fail("no_backup",
                fmt::format("'{}' can only be written in place, and what is there could not be kept", shown(path)),
                "Make room in the container, or write the file with a command");
  }
  if (auto noted = (*journal_of_writes)->begin_in_place(path, current.content.revision, after); !noted) {
    return noted;
  }
  auto written = write_over(file.get(), bytes, path);
  if (!written) {
    // What is there may be neither: the old content comes back from the store.
    if (const auto before = m_store.get(current.content.revision, k_most_revised_bytes)) {
      (void)write_over(file.get(), *before, path);
    }
  }
  if (mode && written && ::fchmod(file.get(), *mode) != 0) {
    answer.notes.push_back(fmt::format("the mode ({:o}) could not be set", *mode));
  }
  (*journal_of_writes)->done();
  return written;
}

Result<void> FileChanger::replace(const Current& current, std::string_view bytes, const std::optional<mode_t>& mode,
                                  ChangeAnswer& answer) {
  const ResolvedFile* before = current.file ? &*current.file : nullptr;
  const auto in_place = [&](const std::string& why) {
    answer.notes.push_back("written in place, not in one step: " + why);
    return write_in_place(current, bytes, mode, answer);
  };
  if (before != nullptr && before->info.st_nlink > 1) {
    return in_place(fmt::format("the file has {} names (hard links), which stay one file", before->info.st_nlink));
  }
  const auto journal_of_writes = journal();
  if (!journal_of_writes) {
    return fail(journal_of_writes.error());
  }
  auto created = TemporaryFile::create(current.place, **journal_of_writes);
  if (!created) {
    const std::string& code = created.error().code;
    return before != nullptr && (code == "no_permission" || code == "read_only")
               ? in_place("no other file can be made in its directory")
               : fail(created.error());
  }
  std::optional<TemporaryFile> temporary(std::move(*created));
  if (auto written = temporary->append(bytes); !written) {
    return written;
  }
  for (const std::string& lost : temporary->resemble(before, mode)) {
    answer.notes.push_back("could not be kept: " + lost);
  }
  remember(bytes);
  auto published = temporary->publish(before);
  if (!published && published.error().code == "is_busy") {
    temporary.reset();  // before the journal speaks of something else
    return in_place("the file is mounted by itself");
  }
  return published;
}

Result<ChangeAnswer> FileChanger::commit(const ChangeRequest& request, const Current& current, std::string_view bytes,
                                         const std::optional<mode_t>& mode, ChangeAnswer answer) {
  FileChange change = keep_before(current, answer);
  change.after = revision_of(bytes);
  if (auto replaced = replace(current, bytes, mode, answer); !replaced) {
    return fail(replaced.error());
  }
  answer.size = bytes.size();
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

Encoding FileChanger::encoding_for(const NewContent& content, const Current& current) {
  const bool has_one = current.content.page && current.content.size > 0;
  return content.encoding.value_or(has_one ? current.content.page->encoding : Encoding::utf8);
}

Result<ChangeAnswer> FileChanger::write(const FileSpace& space, const ChangeRequest& request,
                                        const NewContent& content) {
  const auto current = look_up(space, request.path, Absent::is_to_be_made);
  if (!current) {
    return fail(current.error());
  }
  if (auto unchanged = expect_unchanged(request, *current); !unchanged) {
    return fail(unchanged.error());
  }
  ChangeAnswer answer;
  if (!content.is_text) {
    return commit(request, *current, content.bytes, content.mode, std::move(answer));
  }
  answer.encoding = encoding_for(content, *current);
  if (answer.encoding == Encoding::utf8) {
    return commit(request, *current, content.bytes, content.mode, std::move(answer));
  }
  const auto bytes = encode(content.bytes, answer.encoding);
  return bytes ? commit(request, *current, *bytes, content.mode, std::move(answer)) : fail(bytes.error());
}

Result<ChangeAnswer> FileChanger::edit(const FileSpace& space, const ChangeRequest& request,
                                       std::span<const Edit> edits) {
  const auto current = look_up(space, request.path, Absent::is_an_error);
  if (!current) {
    return fail(current.error());
  }
  const auto expected = expected_revision(request, *current);
  const auto text = expected ? text_of(current->content, current->place.path) : fail(expected.error());
  if (!text) {
    return fail(text.error());
  }
  const bool is_stale = *expected != current->content.revision;
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
  if (is_stale && std::any_of(edited->replacements.begin(), edited->replacements.end(),
                              [](std::size_t count) { return count > 1; })) {
    return fail(changed_since_read(*expected, *current));
  }
  const Encoding encoding = current->content.page->encoding;
  const auto bytes = encode(edited->text, encoding);
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
  return commit(request, *current, *bytes, std::nullopt, std::move(answer));
}

Result<ChangeAnswer> FileChanger::undo(const FileSpace& space, const ChangeRequest& request,
                                       const std::optional<std::string>& change) {
  const auto current = look_up(space, request.path, Absent::is_fine);
  if (!current) {
    return fail(current.error());
  }
  const auto found = m_history.find_change(current->place.path, change);
  if (!found) {
    return fail("no_such_change", fmt::format("no change of '{}' is known that could be undone", shown(request.path)),
                "Only changes by these tools can be undone, and only the newer ones");
  }
  if (current->content.revision != found->after) {
    const auto since = current->file ? changes_since(found->after, *current) : std::nullopt;
    return fail("file_changed",
                fmt::format("'{}' has changed since {}{}", shown(request.path), found->id,
                            since ? ". What has changed since:\n" + since->text : std::string()),
                "Undo the later changes first, or write the content that you want");
  }
  if (found->before.empty()) {
    return remove(request, *current);
  }
  const auto content = m_store.get(found->before, k_most_revised_bytes);
  if (!content) {
    return fail(content.error());
  }
  ChangeAnswer answer;
  const auto encoding = detect_encoding(*content);
  const auto before = encoding && content->size() <= k_most_diffed_bytes ? decode(*content, *encoding) : fail("", "");
  const auto now = current->content.whole && current->content.page
                       ? decode(*current->content.whole, current->content.page->encoding)
                       : Result<std::string>("");
  if (before && now) {
    answer.diff = unified_diff(*now, *before, current->place.path);
  }
  answer.encoding = encoding.value_or(Encoding::utf8);
  return commit(request, *current, *content, found->mode, std::move(answer));
}

/// Undoes the making of a file.
Result<ChangeAnswer> FileChanger::remove(const ChangeRequest& request, const Current& current) {
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
