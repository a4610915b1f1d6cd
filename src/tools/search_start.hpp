#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/toolbox.hpp"

namespace dockbridge::tools {

/// The directory in which a search starts.
struct SearchStart {
  std::string given;  ///< as the client names it; empty for the workdir
  std::string path;   ///< absolute
};

/// Makes `globs`, which the argument `name` gave, relative to the start of the search: `path`, or the workdir. A glob
/// may be absolute, or begin with "~/" or "../": then the search starts at the directory that it names before the first
/// wildcard. With `path`, a leading slash that does not lead below it stands for `path`.
SearchStart search_start(const ToolRequest& call, const std::optional<std::string>& path, const std::string& name,
                         std::vector<std::string>& globs);

/// Splits absolute globs at the deepest directory that contains all of them, and returns that. They keep a leading
/// slash, which stands for that directory.
std::string take_common_directory(std::span<std::string> globs);

/// A path of a file below a directory.
std::string joined_path(std::string_view directory, std::string_view path);

}  // namespace dockbridge::tools
