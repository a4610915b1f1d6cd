#include "tools/argument_names.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

namespace dockbridge::tools {

namespace {

constexpr ArgumentAlias k_command_aliases[] = {
    {"cmd", "command"},
    {"script", "command"},
    {"workdir", "cwd"},
    {"working_directory", "cwd"},
    {"workingDirectory", "cwd"},
    {"dir_path", "cwd"},
    {"directory", "cwd"},
    {"environment", "env"},
    {"input", "stdin"},
    {"inactivityTimeout", "maxWaitTime"},
    {"inactivity_timeout", "maxWaitTime"},
    {"timeout_ms", "timeoutMs"},
    {"yield_time_ms", "timeoutMs"},
    {"run_in_background", "background"},
    {"is_background", "background"},
    {"wait_for", "waitFor"},
    {"max_output", "maxOutput"},
    {"pty", "tty"},
};

constexpr ArgumentAlias k_python_aliases[] = {
    {"command", "code"},           {"script", "code"},          {"source", "code"},
    {"session_id", "session"},     {"sessionId", "session"},    {"session_name", "session"},
    {"restart", "reset"},          {"python", "interpreter"},   {"python_path", "interpreter"},
    {"venv", "interpreter"},       {"workdir", "cwd"},          {"working_dir", "cwd"},
    {"working_directory", "cwd"},  {"environment", "env"},      {"timeout_ms", "timeoutMs"},
    {"max_runtime", "maxRuntime"}, {"max_output", "maxOutput"},
};

constexpr ArgumentAlias k_process_aliases[] = {
    {"process_id", "processId"},
    {"process_ids", "processIds"},
    {"session_id", "processId"},
    {"bash_id", "processId"},
    {"shell_id", "processId"},
    {"task_id", "processId"},
    {"id", "processId"},
    {"filter", "grep"},
    {"pattern", "grep"},
    {"cursor", "since"},
    {"wait_for", "waitFor"},
    {"timeout_ms", "timeoutMs"},
    {"yield_time_ms", "timeoutMs"},
    {"max_output", "maxOutput"},
    {"text", "input"},
    {"chars", "input"},
    {"data", "input"},
    {"stdin", "input"},
    {"key", "keys"},
    {"newline", "autoNewline"},
    {"append_newline", "autoNewline"},
    {"columns", "cols"},
};

constexpr ArgumentAlias k_file_aliases[] = {
    {"file_path", "filePath"},
    {"path", "filePath"},
    {"file", "filePath"},
    {"filename", "filePath"},
    {"old_string", "oldString"},
    {"old_str", "oldString"},
    {"oldText", "oldString"},
    {"old_text", "oldString"},
    {"new_string", "newString"},
    {"new_str", "newString"},
    {"newText", "newString"},
    {"new_text", "newString"},
    {"replace_all", "replaceAll"},
    {"allow_multiple", "replaceAll"},
    {"contents", "content"},
    {"file_text", "content"},
    {"text", "content"},
    {"expected_revision", "expectedRevision"},
    {"revision", "expectedRevision"},
    {"host_path", "hostPath"},
};

constexpr ArgumentAlias k_search_aliases[] = {
    {"dir_path", "path"},
    {"directory", "path"},
    {"dir", "path"},
    {"query", "pattern"},
    {"regex", "pattern"},
    {"-i", "caseInsensitive"},
    {"ignoreCase", "caseInsensitive"},
    {"ignore_case", "caseInsensitive"},
    {"case_insensitive", "caseInsensitive"},
    {"-w", "wholeWord"},
    {"-F", "literal"},
    {"fixed_strings", "literal"},
    {"multiline", "multiLine"},
    {"-U", "multiLine"},
    {"-C", "context"},
    {"-A", "context"},
    {"-B", "context"},
    {"glob", "include"},
    {"include_pattern", "include"},
    {"exclude_pattern", "exclude"},
    {"output_mode", "output"},
    {"outputMode", "output"},
    {"head_limit", "maxResults"},
    {"limit", "maxResults"},
    {"max_results", "maxResults"},
    {"respect_git_ignore", "gitignore"},
    {"newest_first", "newestFirst"},
};

constexpr std::array<std::string_view, 18> k_ignored = {"description",
                                                        "explanation",
                                                        "title",
                                                        "justification",
                                                        "with_escalated_permissions",
                                                        "prefix_rule",
                                                        "sandbox_permissions",
                                                        "login",
                                                        "max_output_tokens",
                                                        "dangerouslyDisableSandbox",
                                                        "reason",
                                                        "wait_for_previous",
                                                        "-n",
                                                        "block",
                                                        "additional_permissions",
                                                        "security_risk",
                                                        "instruction",
                                                        "expected_replacements"};

/// Levenshtein distance.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

/// Lower case, without underscores and hyphens: max_wait_time and maxWaitTime are equal.
std::string folded(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, 64)) {
    if (c != '_' && c != '-') {
      text.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
  }
  return text;
}

}  // namespace

std::span<const ArgumentAlias> argument_aliases(std::string_view tool) {
  if (tool == "execute_command") {
    return k_command_aliases;
  }
  if (tool == "python") {
    return k_python_aliases;
  }
  if (tool == "file_grep" || tool == "file_glob" || tool == "file_ls") {
    return k_search_aliases;
  }
  return tool.starts_with("file_") ? std::span<const ArgumentAlias>(k_file_aliases) : k_process_aliases;
}

bool is_ignored_argument(std::string_view name) {
  return std::find(k_ignored.begin(), k_ignored.end(), name) != k_ignored.end();
}

std::string nearest_name(std::string_view name, std::span<const std::string> accepted) {
  const std::string wanted = folded(name);
  std::string nearest;
  std::size_t least = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const std::string& candidate : accepted) {
    const std::string known = folded(candidate);
    const bool contained = wanted.size() >= 4 && (known.find(wanted) != std::string::npos ||
                                                  (known.size() >= 4 && wanted.find(known) != std::string::npos));
    const std::size_t distance = known == wanted ? 0 : contained ? 1 : edit_distance(wanted, known);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace dockbridge::tools
