#include "agent/files/change/edit_set.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "agent/files/revision.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

/// Contents of all files of a set, before and after.
constexpr std::size_t k_max_set_bytes = 64ULL * 1024 * 1024;
constexpr std::size_t k_max_named_errors = 5;
constexpr std::size_t k_max_error_bytes = 9'000;

/// The error with the path in its message.
Error naming(const Error& error, const std::string& path) {
  const std::string displayed = displayed_path(path);
  return error.message.find(displayed) != std::string::npos ? error : error.within(displayed);
}

/// Combines the errors of several files.
Error combined(const std::vector<Error>& errors, std::size_t files) {
  if (errors.size() == 1 && files == 1) {
    return errors.front();
  }
  Error error = errors.front();
  std::size_t named = 1;
  for (; named < std::min(errors.size(), k_max_named_errors) &&
         error.message.size() + errors[named].message.size() < k_max_error_bytes;
       ++named) {
    error.message += "\n" + errors[named].message;
  }
  if (errors.size() > named) {
    error.message += fmt::format("\nand {} more", errors.size() - named);
  }
  error.message += "\nNo file was changed";
  return error;
}

}  // namespace

Result<std::vector<PreparedEdit>> EditSet::prepare(const FileSpace& space, LockedDirectories& locked) {
  const std::vector<wire::FileEdits>& files = m_request.files;
  // Every process locks directories in the same order.
  std::vector<std::size_t> order(files.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return files[a].path < files[b].path; });
  std::vector<std::optional<PreparedEdit>> found(files.size());
  std::vector<Error> errors;
  std::size_t bytes = 0;
  std::set<std::pair<dev_t, ino_t>> identities;
  for (const std::size_t i : order) {
    const wire::FileEdits& file = files[i];
    auto prepared = prepare_edit(m_committer.guard(), space,
                                 {file.path, m_request.owner, file.expected_revision, m_request.match_is_enough},
                                 file.edits, m_mode, &locked);
    if (!prepared && m_mode.is_replacement && prepared.error().code == ErrorCode::no_match) {
      continue;
    }
    if (!prepared) {
      errors.push_back(naming(prepared.error(), file.path));
      continue;
    }
    const struct stat& info = prepared->current.file->info;
    const bool is_first = identities.emplace(info.st_dev, info.st_ino).second;
    if (!is_first && m_mode.is_replacement) {
      continue;  // it is replaced under its other name
    }
    if (!is_first) {
      return fail(ErrorCode::same_file,
                  "Two paths name the same file: " + displayed_path(prepared->current.place.path));
    }
    bytes += prepared->bytes.size() + prepared->current.content.size;
    if (bytes > k_max_set_bytes) {
      return fail(ErrorCode::too_large, fmt::format("The files exceed {} together", human_bytes(k_max_set_bytes)),
                  "Edit fewer files in one call");
    }
    found[i] = std::move(*prepared);
  }
  if (!errors.empty()) {
    return fail(combined(errors, files.size()));
  }
  std::vector<PreparedEdit> all;
  for (auto& prepared : found) {
    if (prepared) {
      all.push_back(std::move(*prepared));
    }
  }
  return all;
}

std::vector<ChangeAnswer> EditSet::preview(std::vector<PreparedEdit>& prepared) {
  std::vector<ChangeAnswer> answers;
  for (PreparedEdit& edit : prepared) {
    m_committer.guard().note_preview(m_request.owner, m_mode, edit.current);
    edit.answer.path = edit.current.place.path;
    edit.answer.before = edit.current.content.revision;
    edit.answer.size = edit.bytes.size();
    answers.push_back(std::move(edit.answer));
  }
  return answers;
}

Result<std::vector<FileChange>> EditSet::store_contents(std::vector<PreparedEdit>& prepared) {
  std::vector<FileChange> changes;
  for (PreparedEdit& edit : prepared) {
    FileChange change = m_committer.keep_before(edit.current, edit.answer);
    change.after = revision_of(edit.bytes);
    const auto stored = m_committer.writer().store().put(change.after, edit.bytes);
    if (change.id.empty() || !stored) {
      return fail(ErrorCode::no_backup,
                  "No room to store the contents of " + displayed_path(change.path) + "; no file was changed",
                  "Free some space in the container, or edit one file at a time");
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

Result<void> EditSet::write(std::vector<PreparedEdit>& prepared, std::span<const FileChange> changes) {
  std::vector<SetEntry> entries;
  for (const FileChange& change : changes) {
    entries.push_back({change.path, change.before, change.after});
  }
  auto journal = WriteJournal::open(m_state_fd);
  if (auto begun = journal ? journal->begin_set(entries) : fail(journal.error()); !begun) {
    return begun;
  }
  for (std::size_t i = 0; i < prepared.size(); ++i) {
    auto& [current, bytes, answer] = prepared[i];
    const auto notes = m_committer.writer().write(current, NewBytes(bytes), std::nullopt);
    if (!notes) {
      Error error = naming(notes.error(), current.place.path);
      // Closing the replaced files, which have no name any more, frees their blocks.
      for (PreparedEdit& edit : prepared) {
        edit.current.file.reset();
      }
      return fail(roll_back(std::span(entries).first(i), *journal, std::move(error)));
    }
    answer.notes.insert(answer.notes.end(), notes->begin(), notes->end());
  }
  journal->done();
  return {};
}

Error EditSet::roll_back(std::span<const SetEntry> entries, WriteJournal& journal, Error error) {
  m_committer.writer().spare().drop();
  std::vector<Error> unrestored;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (auto restored = WriteJournal::restore(*entry, m_committer.writer().store()); !restored) {
      unrestored.push_back(naming(restored.error(), entry->path));
    }
  }
  if (!unrestored.empty()) {
    journal.leave();
    return {ErrorCode::half_written,
            fmt::format("{}; and {} of {} changed files could not be restored: {}", error.message, unrestored.size(),
                        entries.size(), unrestored.front().message),
            "That is retried at once and by the next session. Read all of the files to see what they contain"};
  }
  journal.done();
  error.message += error.code == ErrorCode::half_written ? "; the other files are unchanged" : "; no file was changed";
  return error;
}

Result<std::vector<ChangeAnswer>> EditSet::run(const FileSpace& space) {
  LockedDirectories locked;
  auto prepared = prepare(space, locked);
  if (!prepared) {
    return fail(prepared.error());
  }
  if (m_mode.preview) {
    return preview(*prepared);
  }
  auto changes = store_contents(*prepared);
  const auto written = changes ? write(*prepared, *changes) : fail(changes.error());
  if (!written) {
    return fail(written.error());
  }
  std::vector<ChangeAnswer> answers;
  for (std::size_t i = 0; i < prepared->size(); ++i) {
    auto& edit = (*prepared)[i];
    edit.answer.size = edit.bytes.size();
    m_committer.record(m_request.owner, std::move((*changes)[i]), edit.answer);
    answers.push_back(std::move(edit.answer));
  }
  return answers;
}

}  // namespace dockbridge::agent
