#pragma once

#include <string>
#include <string_view>

namespace dockbridge::agent {

/// The path of a program as a shell with this PATH would find it, or in the usual directories after those; empty if it
/// does not exist. A name with a slash is returned as it is. Relative directories in PATH count from `cwd`.
std::string find_program(const std::string& name, std::string_view search_path, const std::string& cwd = {});

}  // namespace dockbridge::agent
