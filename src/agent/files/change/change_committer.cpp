#include "agent/files/change/change_committer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "util/text.hpp"

namespace dockbridge::agent {

FileChange ChangeCommitter::keep_before(const CurrentFile& current, ChangeAnswer& answer) {
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

Result<ChangeAnswer> ChangeCommitter::commit(const std::string& owner, const CurrentFile& current,
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
    m_deferred.store(content.revision(), std::string(*bytes));
  }
  m_deferred.add_change(current);
  if (content.size() > k_max_revised_bytes) {
    change.id.clear();
    answer.notes.push_back(
        fmt::format("over {} a file is too large to be changed by these tools, so this cannot be undone",
                    human_bytes(k_max_revised_bytes)));
  }
  answer.size = content.size();
  record(owner, std::move(change), answer);
  return answer;
}

Result<ChangeAnswer> ChangeCommitter::remove(const std::string& owner, const CurrentFile& current) {
  ChangeAnswer answer;
  FileChange change = keep_before(current, answer);
  if (::unlinkat(current.place.directory.get(), current.place.name.c_str(), 0) != 0) {
    return fail(file_error(current.place.path, errno));
  }
  ::fsync(current.place.directory.get());
  answer.notes.emplace_back("the file did not exist before that change, and was removed");
  record(owner, std::move(change), answer);
  return answer;
}

void ChangeCommitter::record(const std::string& owner, FileChange change, ChangeAnswer& answer) const {
  answer.path = change.path;
  answer.before = change.before;
  answer.revision = change.after;
  SeenContent seen{change.after};
  if (!answer.is_whole_write) {
    const auto before = m_history.last_seen(owner, change.path);
    seen.lines = before && before->revision == change.before ? before->lines : 0;
    // The removed lines may be among those that were seen.
    seen.lines -= seen.lines == SeenContent::k_all_lines ? 0 : std::min(seen.lines, std::uint64_t{answer.diff.removed});
  }
  m_history.note_seen(owner, change.path, seen);
  if (!change.id.empty() && m_history.note_change(change)) {
    answer.change = std::move(change.id);
  }
}

}  // namespace dockbridge::agent
