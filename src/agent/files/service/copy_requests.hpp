#pragma once

#include <memory>

#include "agent/files/change/file_changer.hpp"
#include "agent/files/file_space.hpp"
#include "agent/files/service/download.hpp"
#include "error/error.hpp"
#include "wire/file_read_messages.hpp"

namespace dockbridge::agent {

/// Requests that copy a file out of the container. One copy at a time: its file stays open between the requests.
class CopyRequests {
 public:
  /// With an owner, the answer also describes the content, and the file counts as read by that owner.
  Result<wire::FileOpenAnswer> open(const FileSpace& space, FileChanger& changer, const wire::FileOpenRequest& request);
  Result<wire::FileNextAnswer> next(const wire::FileNextRequest& request);
  void close() { m_download.reset(); }

 private:
  std::unique_ptr<Download> m_download;
};

}  // namespace dockbridge::agent
