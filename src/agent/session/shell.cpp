#include "agent/session/shell.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "agent/program_path.hpp"

namespace dockbridge::agent {

namespace {

std::string find_in_own_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  return find_program(name, variable != nullptr ? variable : "");
}

/// Splits a command into words. Supports quotes and backslashes; nullopt if the command needs a shell.
std::optional<std::vector<std::string>> split_words(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == '\'') {
      if (c == quote) {
        quote = 0;
      } else {
        word.push_back(c);
      }
    } else if (c == '\\' && i + 1 < command.size() &&
               (quote == 0 || std::string_view("$`\"\\").find(command[i + 1]) != std::string_view::npos)) {
      word.push_back(command[++i]);
      in_word = true;
    } else if (quote == '"' && c == '"') {
      quote = 0;
    } else if (c == '$' || c == '`') {
      return std::nullopt;
    } else if (quote == '"') {
      word.push_back(c);
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t') {
      if (in_word) {
        words.push_back(std::move(word));
        word.clear();
        in_word = false;
      }
    } else if (std::string_view("|&;<>()*?[#~\n").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (quote != 0) {
    return std::nullopt;
  }
  if (in_word) {
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

std::string find_shell() {
  const std::string bash = find_in_own_path("bash");
  return bash.empty() ? find_in_own_path("sh") : bash;
}

bool needs_script(const std::string& shell, const std::string& command) {
  return !shell.empty() && command.size() + 1 > k_max_argument_bytes;
}

Result<std::vector<std::string>> command_arguments(const std::string& shell, const std::string& command,
                                                   const std::string& script_path) {
  if (command.find('\0') != std::string::npos) {
    return fail(ErrorCode::bad_request, "The command has a NUL byte",
                "Use an escape that the program understands, such as \\0 for printf");
  }
  if (needs_script(shell, command)) {
    return std::vector<std::string>{shell, script_path};
  }
  if (!shell.empty()) {
    return std::vector<std::string>{shell, "-c", command};
  }
  auto words = split_words(command);
  if (!words || words->empty()) {
    return fail(ErrorCode::no_shell, "The container has no shell; only a plain program can run");
  }
  std::string program = find_in_own_path(words->front());
  if (program.empty()) {
    return fail(ErrorCode::no_such_program, fmt::format("Program not found in the container: {}", words->front()),
                "Use the full path of a program. The container has no shell");
  }
  words->front() = std::move(program);
  return std::move(*words);
}

}  // namespace dockbridge::agent
