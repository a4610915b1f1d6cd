#include "tools/search_start.hpp"

#include <algorithm>

#include "tools/file_report.hpp"

namespace dockbridge::tools {

namespace {

bool leaves_start(std::string_view glob) {
  return glob.starts_with('/') || glob.starts_with("~/") || glob.starts_with("../");
}

/// The part of an absolute glob before the last slash that no wildcard precedes.
std::string_view literal_directory(std::string_view glob) {
  return glob.substr(0, glob.substr(0, glob.find_first_of("*?[{\\")).rfind('/'));
}

/// Whether an absolute path is a directory itself or below it. False for a path with "..", which may lead anywhere.
bool is_at_or_below(std::string_view path, std::string_view directory) {
  directory = directory.substr(0, directory.find_last_not_of('/') + 1);
  const bool leads_up = path.ends_with("/..") || path.find("/../") != std::string_view::npos;
  return !leads_up && path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

std::string joined_path(std::string_view directory, std::string_view path) {
  return std::string(directory) + (directory.ends_with('/') ? "" : "/") + std::string(path);
}

std::string take_common_directory(std::span<std::string> globs) {
  const auto contains = [](std::string_view directory, std::string_view glob) {
    return glob.starts_with(directory) && glob[directory.size()] == '/';
  };
  std::string_view common = literal_directory(globs.front());
  for (const std::string& glob : globs) {
    while (!contains(common, glob)) {
      common = common.substr(0, common.rfind('/'));
    }
  }
  std::string directory(common);
  for (std::string& glob : globs) {
    glob.erase(0, directory.size());
  }
  return directory.empty() ? "/" : directory;
}

SearchStart search_start(const ToolRequest& call, const std::optional<std::string>& path, const std::string& name,
                         std::vector<std::string>& globs) {
  const SearchStart start{path.value_or(""), path ? absolute_path(call, "path", *path) : call.sandbox.files().base()};
  for (std::string& glob : globs) {
    glob.erase(0, glob.starts_with("./") && glob.size() > 2 ? 2 : 0);
  }
  const auto leaving = std::count_if(globs.begin(), globs.end(), leaves_start);
  if (leaving == 0) {
    return start;
  }
  if (static_cast<std::size_t>(leaving) != globs.size()) {
    call.arguments.reject(name, "must not combine absolute and relative globs");
    return start;
  }
  const bool have_slash =
      std::all_of(globs.begin(), globs.end(), [](const std::string& glob) { return glob.starts_with('/'); });
  if (!start.given.empty() && have_slash) {  // absolute below the path, or relative to it
    const std::string prefix = start.path.substr(0, start.path.find_last_not_of('/') + 1);
    for (std::string& glob : globs) {
      glob.erase(0, is_at_or_below(literal_directory(glob), prefix) ? prefix.size() : 0);
    }
    return start;
  }
  for (std::string& glob : globs) {
    glob = glob.starts_with("../") ? joined_path(start.path, glob) : absolute_path(call, name, glob);
  }
  const std::string directory = take_common_directory(globs);
  return {directory, directory};
}

}  // namespace dockbridge::tools
