#include "agent/session/pattern.hpp"

#include <re2/re2.h>

namespace dockbridge::agent {

Result<std::unique_ptr<re2::RE2>> compile_pattern(const std::string& pattern, bool ignore_case) {
  constexpr std::int64_t k_memory_bytes = 8L * 1024 * 1024;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(k_memory_bytes);
  options.set_case_sensitive(!ignore_case);
  auto compiled = std::make_unique<re2::RE2>(pattern, options);
  if (!compiled->ok()) {
    return fail(ErrorCode::bad_pattern, "Not a regular expression: " + compiled->error(),
                "Use RE2 syntax: no look-around and no back-references; escape ( [ { . * + ? with a backslash");
  }
  return compiled;
}

}  // namespace dockbridge::agent
