#pragma once

#include <memory>
#include <string>

#include "error/error.hpp"

namespace re2 {
class RE2;
}

namespace dockbridge::agent {

/// A regular expression that takes bounded memory and linear time. Error `bad_pattern` with what is wrong with it.
Result<std::unique_ptr<re2::RE2>> compile_pattern(const std::string& pattern, bool ignore_case = false);

}  // namespace dockbridge::agent
