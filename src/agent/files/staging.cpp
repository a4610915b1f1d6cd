#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "agent/files/file_changer.hpp"
#include "agent/files/revision.hpp"
#include "util/file.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

std::string shown(const std::string& path) {
  return printable_line(path, 300);
}

/// The revision of what is in a file, from its start to its end.
Result<std::string> revision_of_file(int fd) {
  RevisionHash hash;
  std::string piece(256 * 1024, '\0');
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, piece.data(), piece.size(), at);
    if (got < 0) {
      return fail(errno_error("read"));
    }
    if (got == 0) {
      return hash.revision();
    }
    hash.feed({piece.data(), static_cast<std::size_t>(got)});
    at += got;
  }
}

}  // namespace

Result<void> FileChanger::stage(const FileSpace& space, const std::string& path, std::string_view bytes, bool first) {
  if (first) {
    abandon_staged();
    auto file = space.find(path);
    if (file) {
      if (auto regular = expect_regular(*file); !regular) {
        return regular;
      }
    } else if (file.error().code != "no_such_file") {
      return fail(file.error());
    }
    auto place = file ? space.place_of(*file) : space.place_for(path, true);
    const auto journal_of_writes = place ? journal() : fail(place.error());
    if (!journal_of_writes) {
      return fail(journal_of_writes.error());
    }
    auto staged = std::make_unique<Staged>(Staged{std::move(*place), std::nullopt});
    auto temporary = TemporaryFile::create(staged->place, **journal_of_writes);
    if (!temporary) {
      return fail(temporary.error());
    }
    staged->file.emplace(std::move(*temporary));
    m_staged = std::move(staged);
  }
  if (!m_staged) {
    return fail("nothing_staged", "there is no content that this could be added to", "Begin again");
  }
  return m_staged->file->append(bytes);
}

void FileChanger::abandon_staged() {
  m_staged.reset();
}

Result<ChangeAnswer> FileChanger::write_staged(const FileSpace& space, const ChangeRequest& request,
                                               const NewContent& content) {
  const auto staged = std::exchange(m_staged, nullptr);
  if (!staged) {
    return fail("nothing_staged", "there is no content that could be written", "Begin again");
  }
  const auto current = look_up(space, request.path, Absent::is_to_be_made);
  if (!current) {
    return fail(current.error());
  }
  if (auto unchanged = expect_unchanged(request, *current); !unchanged) {
    return fail(unchanged.error());
  }
  if (current->place.path != staged->place.path) {
    return fail("file_changed", fmt::format("'{}' leads elsewhere than before", shown(request.path)), "Begin again");
  }
  const bool as_it_is = !content.is_text || encoding_for(content, *current) == Encoding::utf8;
  if (!as_it_is) {
    return fail("too_large", "so long a text can be stored only as UTF-8 here",
                "Give encoding: utf-8, or base64 of the bytes as they shall be");
  }
  const ResolvedFile* before = current->file ? &*current->file : nullptr;
  ChangeAnswer answer;
  FileChange change = keep_before(*current, answer);
  auto revision = revision_of_file(staged->file->fd());
  if (!revision) {
    return fail(revision.error());
  }
  for (const std::string& lost : staged->file->resemble(before, content.mode)) {
    answer.notes.push_back("could not be kept: " + lost);
  }
  if (before != nullptr && before->info.st_nlink > 1) {
    answer.notes.push_back(
        fmt::format("the file had {} names (hard links); the others keep the earlier content", before->info.st_nlink));
  }
  if (auto published = staged->file->publish(before); !published) {
    return fail(published.error().code == "is_busy"
                    ? Error{"too_large", "a file that is mounted by itself cannot be replaced by so large a content",
                            "Write it with a command"}
                    : published.error());
  }
  answer.size = static_cast<std::uint64_t>(::lseek(staged->file->fd(), 0, SEEK_END));
  change.after = std::move(*revision);
  record(request, std::move(change), answer);
  return answer;
}

}  // namespace dockbridge::agent
