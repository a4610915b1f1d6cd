#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "agent/files/change/file_changer.hpp"
#include "agent/files/revision.hpp"
#include "util/text.hpp"

// The part of FileChanger that changes several files, all or none.

namespace dockbridge::agent {

namespace {

/// Contents of all files of a set, before and after.
constexpr std::size_t k_max_set_bytes = 64ULL * 1024 * 1024;
constexpr std::size_t k_max_named_errors = 5;

/// The error with the path in its message.
Error naming(const Error& error, const std::string& path) {
  return error.message.find(shown(path)) != std::string::npos ? error : error.within(shown(path));
}

/// Several files cannot be edited: what is wrong with each of the first ones.
Error all_of(const std::vector<Error>& errors, std::size_t files) {
  if (errors.size() == 1 && files == 1) {
    return errors.front();
  }
  Error error = errors.front();
  for (std::size_t i = 1; i < std::min(errors.size(), k_max_named_errors); ++i) {
    error.message += "\n" + errors[i].message;
  }
  if (errors.size() > k_max_named_errors) {
    error.message += fmt::format("\nand {} more", errors.size() - k_max_named_errors);
  }
  error.message += "\nNo file was changed";
  return error;
}

}  // namespace

Result<std::vector<FileChanger::PreparedEdit>> FileChanger::prepare_all(const FileSpace& space,
                                                                        const wire::FileEditSetRequest& set,
                                                                        LockedDirectories& locked) {
  const std::vector<wire::FileEdits>& files = set.files;
  const EditSetMode mode{set.preview, set.is_replacement};
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
    auto prepared = prepare_edit(space, {file.path, set.owner, file.expected_revision, set.match_is_enough}, file.edits,
                                 mode, &locked);
    if (!prepared && mode.is_replacement && prepared.error().code == ErrorCode::no_match) {
      continue;
    }
    if (!prepared) {
      errors.push_back(naming(prepared.error(), file.path));
      continue;
    }
    const struct stat& info = prepared->current.file->info;
    const bool is_first = identities.emplace(info.st_dev, info.st_ino).second;
    if (!is_first && mode.is_replacement) {
      continue;  // it is replaced under its other name
    }
    if (!is_first) {
      return fail(ErrorCode::same_file, "Two paths name the same file: " + shown(prepared->current.place.path),
                  "Use one path for all edits of a file");
    }
    bytes += prepared->bytes.size() + prepared->current.content.size;
    if (bytes > k_max_set_bytes) {
      return fail(ErrorCode::too_large, fmt::format("The files exceed {} together", human_bytes(k_max_set_bytes)),
                  "Edit fewer files in one call");
    }
    found[i] = std::move(*prepared);
  }
  if (!errors.empty()) {
    return fail(all_of(errors, files.size()));
  }
  std::vector<PreparedEdit> all;
  for (auto& prepared : found) {
    if (prepared) {
      all.push_back(std::move(*prepared));
    }
  }
  return all;
}

Result<std::vector<FileChange>> FileChanger::keep_all(std::vector<PreparedEdit>& prepared) {
  std::vector<FileChange> changes;
  for (PreparedEdit& edit : prepared) {
    FileChange change = keep_before(edit.current, edit.answer);
    change.after = revision_of(edit.bytes);
    const auto kept = m_writer.store().put(change.after, edit.bytes);
    if (change.id.empty() || !kept) {
      return fail(ErrorCode::no_backup,
                  "No room to store the contents of " + shown(change.path) + "; no file was changed",
                  "Free some space in the container, or edit one file at a time");
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

Result<void> FileChanger::write_all(std::vector<PreparedEdit>& prepared, std::span<const FileChange> changes) {
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
    const auto notes = m_writer.write(current, NewBytes(bytes), std::nullopt);
    if (notes) {
      answer.notes.insert(answer.notes.end(), notes->begin(), notes->end());
      continue;
    }
    Error error = naming(notes.error(), current.place.path);
    // The old files have no name any more, and no blocks either once they are closed.
    for (PreparedEdit& edit : prepared) {
      edit.current.file.reset();
    }
    m_writer.spare().drop();
    std::vector<Error> unrestored;
    for (std::size_t done = i; done-- > 0;) {
      if (auto back = WriteJournal::put_back(entries[done], m_writer.store()); !back) {
        unrestored.push_back(naming(back.error(), entries[done].path));
      }
    }
    if (!unrestored.empty()) {
      journal->leave();
      return fail(ErrorCode::half_written,
                  fmt::format("{}; and {} of {} changed files could not be restored: {}", error.message,
                              unrestored.size(), i, unrestored.front().message),
                  "That is retried at once and by the next session. Read all of the files to see what they contain");
    }
    journal->done();
    error.message +=
        error.code == ErrorCode::half_written ? "; the other files are unchanged" : "; no file was changed";
    return fail(std::move(error));
  }
  journal->done();
  return {};
}

Result<std::vector<ChangeAnswer>> FileChanger::edit_all(const FileSpace& space, const wire::FileEditSetRequest& set) {
  run_deferred_work();
  LockedDirectories locked;
  auto prepared = prepare_all(space, set, locked);
  if (!prepared) {
    return fail(prepared.error());
  }
  std::vector<ChangeAnswer> answers;
  if (set.preview) {
    for (PreparedEdit& edit : *prepared) {
      m_history.note_seen(previewer(set.owner, {set.preview, set.is_replacement}), edit.current.place.path,
                          edit.current.content.revision);
      edit.answer.path = edit.current.place.path;
      edit.answer.before = edit.current.content.revision;
      edit.answer.size = edit.bytes.size();
      answers.push_back(std::move(edit.answer));
    }
    return answers;
  }
  auto changes = keep_all(*prepared);
  const auto written = changes ? write_all(*prepared, *changes) : fail(changes.error());
  if (!written) {
    return fail(written.error());
  }
  for (std::size_t i = 0; i < prepared->size(); ++i) {
    auto& edit = (*prepared)[i];
    edit.answer.size = edit.bytes.size();
    record({"", set.owner}, std::move((*changes)[i]), edit.answer);
    answers.push_back(std::move(edit.answer));
  }
  return answers;
}

}  // namespace dockbridge::agent
