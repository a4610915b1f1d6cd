#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/keeper/child.hpp"
#include "util/error.hpp"

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

}  // namespace dockbridge::agent
