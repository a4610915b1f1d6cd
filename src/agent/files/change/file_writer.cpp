#include "agent/files/change/file_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/files/change/in_place.hpp"
#include "agent/files/revision.hpp"
#include "util/file.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr const char* k_mounted = "the file is mounted by itself";

/// Reason not to replace a file: its other names would keep the old content.
std::optional<std::string> reason_against_replacing(const CurrentFile& current) {
  const nlink_t names = current.file ? current.file->info.st_nlink : 1;
  return names > 1 ? std::optional(fmt::format("the file has {} names (hard links), which stay one file", names))
                   : std::nullopt;
}

/// Opens a stored content and verifies its revision.
Result<Fd> open_verified(ContentStore& store, const std::string& revision) {
  auto file = store.open_content(revision);
  return file && revision_of_file(file->get()) != revision
             ? fail(ErrorCode::content_damaged, "The stored content is damaged")
             : std::move(file);
}

}  // namespace

NewBytes::NewBytes(std::string_view bytes) : m_bytes(bytes), m_size(bytes.size()), m_revision(revision_of(bytes)) {}

Result<NewBytes> NewBytes::of_file(int fd) {
  struct stat info {};
  auto revision = ::fstat(fd, &info) == 0 ? revision_of_file(fd) : fail(errno_error("Cannot read"));
  if (!revision) {
    return fail(revision.error());
  }
  NewBytes content;
  content.m_fd = fd;
  content.m_size = static_cast<std::uint64_t>(info.st_size);
  content.m_revision = std::move(*revision);
  return content;
}

Result<void> NewBytes::append_to(TemporaryFile& file) const {
  return m_fd < 0 ? file.append(m_bytes)
                  : read_pieces(m_fd, [&](std::string_view piece) { return file.append(piece); });
}

Result<void> NewBytes::keep_in(ContentStore& store) const {
  return m_fd < 0 ? store.put(m_revision, m_bytes) : store.put_file(m_revision, m_fd, m_size);
}

Result<WriteJournal*> FileWriter::journal() {
  if (!m_journal) {
    auto made = WriteJournal::open(m_state_fd);
    if (!made) {
      return fail(made.error());
    }
    m_journal = std::make_unique<WriteJournal>(std::move(*made));
  }
  return m_journal.get();
}

Result<FileWriter::Notes> FileWriter::write(const CurrentFile& current, const NewBytes& content,
                                            const std::optional<mode_t>& mode) {
  if (const auto reason = reason_against_replacing(current)) {
    return write_in_place(current, *reason, content, mode);
  }
  const auto journal_of_writes = journal();
  if (!journal_of_writes) {
    return fail(journal_of_writes.error());
  }
  // A spare file is used only for a replacement. A new file inherits group and access list of its directory, which may
  // have changed since the spare file was created.
  auto created = TemporaryFile::create(current.place, **journal_of_writes, current.file ? &m_spare : nullptr);
  if (!created) {
    return current.file && TemporaryFile::is_not_permitted(created.error())
               ? write_in_place(current, "no other file can be made in its directory", content, mode)
               : fail(created.error());
  }
  std::optional<TemporaryFile> temporary(std::move(*created));
  if (auto written = content.append_to(*temporary); !written) {
    return fail(written.error());
  }
  auto published = publish(current, *temporary, mode);
  if (!published && published.error().code == ErrorCode::is_busy) {
    temporary.reset();  // before the journal is used for the write in place
    return write_in_place(current, k_mounted, content, mode);
  }
  return published;
}

Result<FileWriter::Notes> FileWriter::write_staged(const CurrentFile& current, TemporaryFile& staged,
                                                   const NewBytes& content, const std::optional<mode_t>& mode) {
  if (const auto reason = reason_against_replacing(current)) {
    return write_in_place(current, *reason, content, mode);
  }
  auto published = publish(current, staged, mode);
  return !published && published.error().code == ErrorCode::is_busy ? write_in_place(current, k_mounted, content, mode)
                                                                    : std::move(published);
}

Result<FileWriter::Notes> FileWriter::publish(const CurrentFile& current, TemporaryFile& file,
                                              const std::optional<mode_t>& mode) {
  Notes notes;
  for (const std::string& lost : file.copy_metadata(current.before(), mode)) {
    notes.push_back("could not be kept: " + lost);
  }
  const auto published = file.publish(current.before());
  return published ? Result<Notes>(std::move(notes)) : fail(published.error());
}

Result<FileWriter::Notes> FileWriter::write_in_place(const CurrentFile& current, const std::string& why,
                                                     const NewBytes& content, const std::optional<mode_t>& mode) {
  const std::string& path = current.place.path;
  const auto journal_of_writes = journal();
  if (!journal_of_writes) {
    return fail(journal_of_writes.error());
  }
  const Fd file(::open(fmt::format("/proc/self/fd/{}", current.file->handle.get()).c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) {
    return fail(file_error(path, errno));
  }
  // Recovery after a crash needs both contents.
  const auto kept = content.keep_in(m_store);
  const auto after = kept ? open_verified(m_store, content.revision()) : fail(kept.error());
  if (!after) {
    return fail(
        ErrorCode::no_backup,
        fmt::format("File can only be written in place ({}), and a copy of the new content could not be stored: {}: {}",
                    why, printable_line(path, 300), after.error().message),
        after.error().code == ErrorCode::too_large
            ? "Write it to another file with file_write, and copy that over this one with a command"
            : "");
  }
  const auto before = open_verified(m_store, current.content.revision);
  if (!before) {
    return fail(ErrorCode::no_backup,
                fmt::format("File can only be written in place, and its content could not be stored: {}: {}",
                            printable_line(path, 300), before.error().message));
  }
  // A write by another process in the meantime would be lost.
  if (auto untouched = expect_untouched(current.place, *current.file); !untouched) {
    return fail(untouched.error());
  }
  if (auto noted = (*journal_of_writes)->begin_in_place(path, current.content.revision, content.revision()); !noted) {
    return fail(noted.error());
  }
  const auto written = write_over(file.get(), after->get(), path);
  if (!written && !write_over(file.get(), before->get(), path)) {  // the file may have a mixture of both
    (*journal_of_writes)->leave();
    m_journal.reset();
    return fail(ErrorCode::half_written,
                fmt::format("File was written in part, and its old content could not be restored: {}: {}",
                            printable_line(path, 300), written.error().message),
                "That is retried at once and by the next session. Read the file to see what it contains");
  }
  (*journal_of_writes)->done();
  if (!written) {
    return fail(written.error());
  }
  Notes notes = {"written in place, not in one step: " + why};
  if (mode && ::fchmod(file.get(), *mode) != 0) {
    notes.push_back(fmt::format("the mode ({:o}) could not be set", *mode));
  }
  return notes;
}

}  // namespace dockbridge::agent
