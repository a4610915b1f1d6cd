#pragma once

#include "agent/files/change/file_changer.hpp"
#include "agent/files/file_space.hpp"
#include "error/error.hpp"
#include "wire/file_read_messages.hpp"

namespace dockbridge::agent {

// Requests that read a file. With an owner, the file counts as read by that owner, which `changer` records.

Result<wire::FileReadAnswer> read_page(const FileSpace& space, FileChanger& changer,
                                       const wire::FileReadRequest& request);
Result<wire::FileBytesAnswer> read_bytes(const FileSpace& space, const wire::FileBytesRequest& request);
/// The image, scaled down to `max_side`.
Result<wire::FileImageAnswer> read_image(const FileSpace& space, FileChanger& changer,
                                         const wire::FileImageRequest& request);

}  // namespace dockbridge::agent
