#include <fcntl.h>
#include <fmt/format.h>

#include <climits>
#include <utility>

#include "agent/files/change/file_changer.hpp"
#include "util/file.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

/// Where a content is gathered whose file is in a directory that takes no other.
Result<FilePlace> place_in(int state_fd) {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", state_fd).c_str(), path.data(), path.size());
  Fd directory(::openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (length < 0 || !directory) {
    return fail(errno_error("Cannot open the state directory"));
  }
  path.resize(static_cast<std::size_t>(length));
  return FilePlace{std::move(directory), "", path + "/"};
}

}  // namespace

Result<std::unique_ptr<FileChanger::Staged>> FileChanger::begin_staging(const FileSpace& space,
                                                                        const std::string& path) const {
  auto file = space.find(path);
  if (!file && file.error().code != ErrorCode::no_such_file) {
    return fail(file.error());
  }
  if (auto regular = file ? expect_regular(*file) : Result<void>(); !regular) {
    return fail(regular.error());
  }
  auto place = file ? space.place_of(*file) : space.place_for(path, true);
  auto journal = place ? WriteJournal::open(m_state_fd) : fail(place.error());
  if (!journal) {
    return fail(journal.error());
  }
  auto staged = std::make_unique<Staged>(Staged{place->path, std::move(*journal), std::move(*place), std::nullopt});
  const auto create = [&]() -> Result<void> {
    auto temporary = TemporaryFile::create(staged->place, staged->journal);
    if (!temporary) {
      return fail(temporary.error());
    }
    staged->file.emplace(std::move(*temporary));
    return {};
  };
  auto created = create();
  if (!created && file && TemporaryFile::has_no_place(created.error())) {
    auto other = place_in(m_state_fd);
    if (!other) {
      return fail(other.error());
    }
    staged->place = std::move(*other);
    created = create();
  }
  return created ? Result<std::unique_ptr<Staged>>(std::move(staged)) : fail(created.error());
}

Result<void> FileChanger::stage(const FileSpace& space, const std::string& path, std::string_view bytes, bool first) {
  if (first) {
    abandon_staged();
    auto staged = begin_staging(space, path);
    if (!staged) {
      return fail(staged.error());
    }
    m_staged = std::move(*staged);
  }
  if (!m_staged) {
    return fail(ErrorCode::nothing_staged, "No content is staged for this part");
  }
  return m_staged->file->append(bytes);
}

void FileChanger::abandon_staged() {
  m_staged.reset();
}

Result<ChangeAnswer> FileChanger::write_staged(const FileSpace& space, const ChangeRequest& request,
                                               const NewContent& content) {
  run_deferred_work();
  const auto staged = std::exchange(m_staged, nullptr);
  if (!staged) {
    return fail(ErrorCode::nothing_staged, "No content is staged");
  }
  const auto current = look_up(space, request.path, Absent::is_to_be_made);
  if (!current) {
    return fail(current.error());
  }
  if (auto unchanged = expect_unchanged(request, *current); !unchanged) {
    return fail(unchanged.error());
  }
  if (current->place.path != staged->path) {
    return fail(ErrorCode::file_changed,
                fmt::format("Path leads to another file than before: {}", printable_line(request.path, 300)));
  }
  const bool as_it_is = !content.is_text || encoding_for(content, *current) == Encoding::utf8;
  if (!as_it_is) {
    return fail(ErrorCode::too_large, "A text of this size can be stored only as UTF-8",
                "Pass encoding: utf-8, or the encoded bytes as base64");
  }
  const auto bytes = NewBytes::of_file(staged->file->fd());
  if (!bytes) {
    return fail(bytes.error());
  }
  const bool is_beside = staged->place.path == staged->path;
  return commit(request, *current, *bytes, content.mode, {}, is_beside ? &*staged->file : nullptr);
}

}  // namespace dockbridge::agent
