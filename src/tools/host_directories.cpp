#include "tools/host_directories.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

std::string shown(const std::string& path) {
  return printable_line(path, 300);
}

Error unsafe_link(const std::string& link) {
  return {ErrorCode::unsafe_host_path,
          fmt::format("The container can change a symbolic link in --allow-host-path: {}", shown(link)),
          "Give the directory's own path to --allow-host-path, then restart dockbridge"};
}

}  // namespace

Error host_error(const std::string& path, int number) {
  if (number == EXDEV) {
    return {ErrorCode::outside_host_path, fmt::format("Not in a directory of --allow-host-path: {}", shown(path))};
  }
  if (number == ELOOP) {
    return {ErrorCode::unsafe_host_path, fmt::format("Symbolic link on the host is not followed: {}", shown(path)),
            "Use a path without symbolic links below the directory of --allow-host-path"};
  }
  return {ErrorCode::host_file, fmt::format("{} on the host: {}", std::strerror(number), shown(path))};
}

Result<std::shared_ptr<const HostDirectories>> HostDirectories::open(const std::vector<std::string>& paths,
                                                                     const std::string& workspace) {
  std::shared_ptr<HostDirectories> directories(new HostDirectories);
  for (const std::string& path : paths) {
    auto walk = PathWalk::to(path);
    if (!walk || !walk->is_directory()) {
      return fail(ErrorCode::bad_option,
                  fmt::format("--allow-host-path {}", walk ? shown(path) + ": Not a directory" : walk.error().message),
                  "Create the directory, or leave out the option");
    }
    if (const auto link = workspace.empty() ? std::nullopt : walk->link_inside({workspace})) {
      return fail(unsafe_link(*link));
    }
    directories->m_paths.push_back(path);
    directories->m_walks.push_back(std::move(*walk));
  }
  return std::shared_ptr<const HostDirectories>(std::move(directories));
}

Result<HostPlace> HostDirectories::place(const std::string& path, const WritableMounts& writable_mounts) const {
  if (path.find('\0') != std::string::npos) {
    return fail(host_error(path, EINVAL));
  }
  for (std::size_t i = 0; i < m_paths.size(); ++i) {
    const std::string base = m_paths[i].substr(0, m_paths[i].find_last_not_of('/') + 1);
    if (!path.starts_with(base + "/")) {
      continue;
    }
    const PathWalk& walk = m_walks[i];
    // The check only reports the replacement. The descriptor always refers to the directory that was allowed.
    if (const auto now = PathWalk::to(m_paths[i]); !now || now->identity() != walk.identity()) {
      return fail(ErrorCode::host_path_changed,
                  fmt::format("Directory was replaced after dockbridge started: {}", shown(base)));
    }
    const auto mounts = walk.has_links() ? writable_mounts() : Result<std::vector<std::string>>();
    if (!mounts) {
      return fail(mounts.error());
    }
    if (const auto link = walk.link_inside(*mounts)) {
      return fail(unsafe_link(*link));
    }
    const std::size_t start = path.find_first_not_of('/', base.size());
    return HostPlace{walk.fd().get(), start == std::string::npos ? "" : path.substr(start)};
  }
  return fail(host_error(path, EXDEV));
}

}  // namespace dockbridge::tools
