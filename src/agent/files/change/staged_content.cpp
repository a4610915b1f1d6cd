#include "agent/files/change/staged_content.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

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

Result<std::unique_ptr<StagedContent>> StagedContent::create(const FileSpace& space, const std::string& path,
                                                             int state_fd) {
  auto target = space.find(path);
  if (!target && target.error().code != ErrorCode::no_such_file) {
    return fail(target.error());
  }
  if (auto regular = target ? expect_regular(*target) : Result<void>(); !regular) {
    return fail(regular.error());
  }
  auto place = target ? space.place_of(*target) : space.place_for(path, true);
  auto journal = place ? WriteJournal::open(state_fd) : fail(place.error());
  if (!journal) {
    return fail(journal.error());
  }
  std::unique_ptr<StagedContent> staged(new StagedContent(std::move(*place), std::move(*journal)));
  auto created = staged->create_file();
  if (!created && target && TemporaryFile::is_not_permitted(created.error())) {
    auto other = place_in(state_fd);
    if (!other) {
      return fail(other.error());
    }
    staged->m_place = std::move(*other);
    created = staged->create_file();
  }
  return created ? Result<std::unique_ptr<StagedContent>>(std::move(staged)) : fail(created.error());
}

Result<void> StagedContent::create_file() {
  auto file = TemporaryFile::create(m_place, m_journal);
  if (!file) {
    return fail(file.error());
  }
  m_file.emplace(std::move(*file));
  return {};
}

}  // namespace dockbridge::agent
