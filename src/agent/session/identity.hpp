#pragma once

#include <string>
#include <string_view>

#include "agent/control/child_spec.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// A user of the container.
struct Account {
  Identity identity;
  std::string name;  ///< empty if the container has no name for it
  std::string home;
};

/// Finds `user` ("name", "uid", "name:group", "uid:gid") in the text of /etc/passwd and /etc/group. libc is not used,
/// because in a static program it would load the container's libraries.
Result<Account> find_account(const std::string& user, std::string_view passwd, std::string_view group);

/// Finds `user` in the files of the container.
Result<Account> find_account(const std::string& user);

/// The home directory of this process's user: HOME, else the entry in /etc/passwd.
std::string own_home();

/// `path` with a leading "~" replaced by `home`; unchanged if it has none.
std::string expand_home(const std::string& path, const std::string& home);

}  // namespace dockbridge::agent
