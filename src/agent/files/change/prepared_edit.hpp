#pragma once

#include <span>
#include <string>

#include "agent/files/change/change_answer.hpp"
#include "agent/files/change/change_guard.hpp"
#include "agent/files/change/current_file.hpp"
#include "agent/files/file_space.hpp"
#include "agent/files/text/edit.hpp"
#include "error/error.hpp"
#include "wire/file_change_messages.hpp"

namespace dockbridge::agent {

/// The result of edits to one file, checked and not yet written.
struct PreparedEdit {
  CurrentFile current;
  std::string bytes;
  ChangeAnswer answer;
};

/// Reads the file, checks that its owner may change it, and applies the edits in memory. With `locked`, directories in
/// it are not locked again.
Result<PreparedEdit> prepare_edit(const ChangeGuard& guard, const FileSpace& space, const wire::ChangeRequest& request,
                                  std::span<const TextEdit> edits, const EditSetMode& mode = {},
                                  LockedDirectories* locked = nullptr);

}  // namespace dockbridge::agent
