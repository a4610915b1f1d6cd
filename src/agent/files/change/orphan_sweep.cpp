#include "agent/files/change/orphan_sweep.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "util/temporary_name.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_directories = 64;

}  // namespace

bool OrphanSweep::is_due(int directory_fd, Clock::time_point now) {
  struct stat info {};
  if (::fstat(directory_fd, &info) != 0) {
    return false;
  }
  const FileIdentity directory{info.st_dev, info.st_ino};
  std::erase_if(m_swept, [&](const Swept& swept) { return now - swept.at > k_orphan_age; });
  if (std::any_of(m_swept.begin(), m_swept.end(), [&](const Swept& swept) { return swept.directory == directory; })) {
    return false;
  }
  if (m_swept.size() == k_max_directories) {
    m_swept.erase(m_swept.begin());
  }
  m_swept.push_back({directory, now});
  return true;
}

}  // namespace dockbridge::agent
