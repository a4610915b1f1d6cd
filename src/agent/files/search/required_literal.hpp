#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dockbridge::agent {

constexpr std::size_t k_max_required_literals = 4;

/// Texts of which every match of `regex` contains at least one, so that only lines with one of them have to be held
/// against it. `regex` is RE2 syntax and has been compiled; with `ignore_case` it is matched with that flag, and the
/// texts are to be found in either case of ASCII letters. Empty: nothing is known, which is always right.
std::vector<std::string> required_literals(std::string_view regex, bool ignore_case);

/// The text that `regex` stands for if it is nothing but that; empty if it is more.
std::string whole_literal(std::string_view regex);

}  // namespace dockbridge::agent
