#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dockbridge::agent {

constexpr std::size_t k_max_required_literals = 4;

/// Returns texts of which every match of `regex` contains at least one. So only lines with one of them need to be
/// matched. `regex` must be valid RE2 syntax. With `ignore_case`, it is matched with that flag, and the texts may occur
/// in either case of ASCII letters. Empty if no texts are known.
std::vector<std::string> required_literals(std::string_view regex, bool ignore_case);

/// Returns the text that is the only match of `regex`; empty if there are other matches.
std::string whole_literal(std::string_view regex);

}  // namespace dockbridge::agent
