#pragma once

#include <string>
#include <string_view>

namespace dockbridge::agent {

/// For a text that was looked for and is not there: sentences on what comes nearest to it, with line numbers, and in
/// what that differs; or that nothing does. Each starts in lower case and the last has no full stop. Takes linear time.
std::string explain_no_match(std::string_view text, std::string_view wanted);

}  // namespace dockbridge::agent
