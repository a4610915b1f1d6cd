#pragma once

#include "agent/files/file_space.hpp"
#include "error/error.hpp"
#include "wire/file_search_messages.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

// Requests that search files. A page that does not fit into a frame is cut, and the answer reports that.

Result<wire::Frame> list_files(const FileSpace& space, const wire::FileListRequest& request);
Result<wire::Frame> glob_files(const FileSpace& space, const wire::FileGlobRequest& request);
Result<wire::Frame> grep_files(const FileSpace& space, const wire::FileGrepRequest& request);

}  // namespace dockbridge::agent
