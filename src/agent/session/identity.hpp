#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/keeper/child.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// A user as the container knows it.
struct Account {
  Identity identity;
  std::string name;  ///< empty if the container has no name for it
  std::string home;
};

/// Finds `user` ("name", "uid", "name:group", "uid:gid") in the text of /etc/passwd and /etc/group. The files are read
/// here and not by libc, which in a static program would load the container's libraries.
Result<Account> find_account(const std::string& user, std::string_view passwd, std::string_view group);

/// The same with the container's own files.
Result<Account> find_account(const std::string& user);

/// The home directory of the user that this process runs as: HOME, else from /etc/passwd.
std::string own_home();

/// `path` with a leading "~" replaced by `home`; unchanged if it has none.
std::string expand_home(const std::string& path, const std::string& home);

}  // namespace dockbridge::agent
