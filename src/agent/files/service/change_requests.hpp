#pragma once

#include "agent/files/change/file_changer.hpp"
#include "agent/files/file_space.hpp"
#include "error/error.hpp"
#include "wire/file_change_messages.hpp"

namespace dockbridge::agent {

// Requests that change files.

Result<wire::ChangedFile> write_file(const FileSpace& space, FileChanger& changer,
                                     const wire::FileWriteRequest& request);
Result<wire::ChangedFile> edit_file(const FileSpace& space, FileChanger& changer, const wire::FileEditRequest& request);
/// Error `too_many_files` if the set exceeds its limits.
Result<wire::ChangedFiles> edit_files(const FileSpace& space, FileChanger& changer,
                                      const wire::FileEditSetRequest& request);
Result<wire::ChangedFile> undo_change(const FileSpace& space, FileChanger& changer,
                                      const wire::FileUndoRequest& request);
Result<wire::FileStageAnswer> stage_content(const FileSpace& space, FileChanger& changer,
                                            const wire::FileStageRequest& request);

}  // namespace dockbridge::agent
