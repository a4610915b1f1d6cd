#pragma once

#include <vector>

#include "mcp/prompt.hpp"
#include "sandbox/sandbox.hpp"

namespace dockbridge::tools {

/// Instructions that every client receives with the greeting. Clients cut them at 2,048 characters. Sentences that name
/// a hidden tool are removed, so each sentence names the tools that it is about and refers to no other sentence.
inline constexpr const char* k_instructions =
    "You work in a persistent Docker container. Files and processes stay between calls. execute_command runs a shell "
    "command; if it falls silent, it continues in the background under a process id. To wait for a process, call "
    "check_process with a timeout instead of polling. send_input answers prompts of a process. Start servers by "
    "execute_command with background: true. Prefer file_read, file_edit and file_write to cat and sed: file_read "
    "numbers lines, file_edit and file_write detect changes by others. file_undo takes back what file_edit or "
    "file_write changed. Prefer file_grep, file_glob and file_ls to grep, find and ls.";

/// Prompts that a person can choose: a failing build, a new project, the running processes.
std::vector<mcp::Prompt> all_prompts(sandbox::Sandbox& sandbox);

}  // namespace dockbridge::tools
