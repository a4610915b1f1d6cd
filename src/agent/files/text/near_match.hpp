#pragma once

#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Explains why a text was not found: sentences on the most similar lines, with their numbers and differences, or that
/// nothing is similar. Each starts in lower case, and the last has no full stop. Takes linear time.
std::string explain_no_match(std::string_view text, std::string_view wanted);

}  // namespace dockbridge::agent
