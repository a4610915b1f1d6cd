#include "tools/tool_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/output.hpp"
#include "tools/tool_selection.hpp"
#include "tools/tool_shape.hpp"

namespace dockbridge::tools {

namespace {

constexpr std::array k_table = {
    ToolRow{.name = "execute_command",
            .title = "Run a command",
            .description =
                "Run a bash script in the container (sh if the image has no bash) and return its output and exit code. "
                "A command that is silent for maxWaitTime, or still runs after timeout, continues in the background "
                "under a process id. check_process waits for it. send_input answers it if it waits for input. Start "
                "servers with background: true, and programs that need a terminal (vim, a REPL) with tty: true.",
            .code = &k_execute_command,
            .annotations = {.destructive = true, .open_world = true},
            .always_load = true,
            .max_result_chars = k_max_max_output,
            .task_support = mcp::TaskSupport::optional},
    ToolRow{.name = "check_process",
            .title = "Check on a process",
            .description =
                "Status, exit code and output of a process. Without processId: list the processes. Do not poll: set "
                "timeout to wait until it ends or waits for input, or waitFor for other events. Finished processes "
                "stay readable for an hour.",
            .code = &k_check_process,
            .annotations = {.read_only = true, .idempotent = true},
            .always_load = true,
            .max_result_chars = k_max_max_output},
    ToolRow{.name = "send_input",
            .title = "Send input",
            .description =
                "Write to the standard input of a running process and return what it printed until it waits for input "
                "again, at most 2 s. A newline is added unless autoNewline is false. Keys are typed on a terminal "
                "after the input.",
            .code = &k_send_input,
            .annotations = {.destructive = true, .open_world = true},
            .max_result_chars = k_max_max_output},
    ToolRow{.name = "control_process",
            .title = "Steer a process",
            .description =
                "Control a process and everything it started. interrupt is ctrl-c; terminate is SIGTERM, then SIGKILL "
                "after grace seconds (default 5).",
            .code = &k_control_process,
            .annotations = {.destructive = true, .idempotent = true}},
    ToolRow{.name = "python",
            .title = "Run Python",
            .description =
                "Run Python code and return its output, the value of the last expression, plots and the error. With "
                "session, variables and imports are kept for later calls; without code it waits for the session's "
                "running code. Code that is silent for maxWaitTime continues in the background.",
            .code = &k_python,
            .annotations = {.destructive = true, .open_world = true},
            .max_result_chars = k_max_max_output},
    ToolRow{.name = "file_read",
            .title = "Read a file",
            .description =
                "Read a text file with line numbers, or an image. Relative paths start at the workdir. Files must be "
                "read before they are changed.",
            .code = &k_file_read,
            .annotations = {.read_only = true, .idempotent = true},
            .match_guard_description =
                "Read a text file with line numbers, or an image. Relative paths start at the workdir. Files must be "
                "read before they are overwritten.",
            .always_load = true,
            .max_result_chars = k_max_result_chars},
    ToolRow{.name = "file_write",
            .title = "Write a file",
            .description =
                "Write a whole file, in one step. Missing directories are created. A file that exists must have been "
                "read first. For small changes use file_edit.",
            .code = &k_file_write,
            .annotations = {.destructive = true, .idempotent = true}},
    ToolRow{.name = "file_edit",
            .title = "Edit a file",
            .description =
                "Replace text in files. oldString must be there exactly once, unless replaceAll is true. edits makes "
                "several replacements, in one or several files, all or none. glob instead of filePath replaces "
                "oldString everywhere in the matching files; preview first. The reply is a diff. file_undo takes a "
                "change back.",
            .code = &k_file_edit,
            .annotations = {.destructive = true},
            .always_load = true},
    ToolRow{.name = "file_undo",
            .title = "Undo a change",
            .description =
                "Undo the newest change that these tools made to a file, or the given one. An undo can be undone.",
            .code = &k_file_undo,
            .annotations = {.destructive = true}},
    ToolRow{.name = "file_ls",
            .title = "List a directory",
            .description = "List a directory, sorted by name.",
            .code = &k_file_ls,
            .annotations = {.read_only = true, .idempotent = true},
            .max_result_chars = k_max_result_chars},
    ToolRow{.name = "file_glob",
            .title = "Find files by name",
            .description =
                "Find files by glob (*, ?, **, [a-z], {a,b}). A pattern without a slash matches names at any depth. "
                "Ignored and hidden files are left out.",
            .code = &k_file_glob,
            .annotations = {.read_only = true, .idempotent = true},
            .max_result_chars = k_max_result_chars},
    ToolRow{.name = "file_grep",
            .title = "Search in files",
            .description =
                "Search file contents by regex (RE2: no look-around or back-references). Ignored, hidden and binary "
                "files are left out.",
            .code = &k_file_grep,
            .annotations = {.read_only = true, .idempotent = true},
            .always_load = true,
            .max_result_chars = k_max_result_chars},
    ToolRow{.name = "file_upload",
            .title = "Copy a file into the container",
            .description =
                "Copy a file from the host into the container. Only files in the directories that the server was "
                "started with (--allow-host-path) can be copied. An existing file in the container must have been read "
                "first, as with file_write.\n"
                "Example: {\"hostPath\": \"/home/me/data/input.csv\", \"filePath\": \"/app/input.csv\", \"rationale\": "
                "\"get the data\"}",
            .code = &k_file_upload,
            .annotations = {.destructive = true, .idempotent = true, .open_world = true},
            .uses_host_directories = true},
    ToolRow{.name = "file_download",
            .title = "Copy a file out of the container",
            .description =
                "Copy a file from the container to the host, into one of the directories that the server was started "
                "with (--allow-host-path). An existing file on the host is replaced only with overwrite: true, and "
                "keeps its mode. The copy is one version of the file: if the file is written to during the copy, the "
                "call fails and the host is unchanged.\n"
                "Example: {\"filePath\": \"/app/report.pdf\", \"hostPath\": \"/home/me/data/report.pdf\", "
                "\"rationale\": \"hand over the result\"}",
            .code = &k_file_download,
            .annotations = {.destructive = true, .idempotent = true, .open_world = true},
            .uses_host_directories = true},
};
static_assert(std::equal(k_table.begin(), k_table.end(), k_tool_names.begin(), k_tool_names.end(),
                         [](const ToolRow& row, std::string_view name) { return row.name == name; }));

}  // namespace

std::span<const ToolRow> tool_table() {
  return k_table;
}

}  // namespace dockbridge::tools
