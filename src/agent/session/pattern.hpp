#pragma once

#include <memory>
#include <string>

#include "error/error.hpp"

namespace re2 {
class RE2;
}

namespace dockbridge::agent {

/// Compiles a regular expression, which uses bounded memory and linear time. Error `bad_pattern` with the problem.
Result<std::unique_ptr<re2::RE2>> compile_pattern(const std::string& pattern, bool ignore_case = false);

}  // namespace dockbridge::agent
