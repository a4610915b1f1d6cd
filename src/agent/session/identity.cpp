#include "agent/session/identity.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <functional>
#include <optional>
#include <vector>

#include "util/file.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_database_bytes = 4 * 1024 * 1024;

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole && !text.empty() ? std::optional(number) : std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

/// Calls `visit` with the fields of each line that has at least `fields` of them.
void each_line(std::string_view text, std::size_t fields,
               const std::function<void(const std::vector<std::string_view>&)>& visit) {
  for (const std::string_view line : split(text, '\n')) {
    if (const auto parts = split(line, ':'); parts.size() >= fields) {
      visit(parts);
    }
  }
}

bool lists(std::string_view members, std::string_view name) {
  for (const std::string_view member : split(members, ',')) {
    if (member == name && !name.empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<Account> find_account(const std::string& user, std::string_view passwd, std::string_view group) {
  const std::size_t colon = user.find(':');
  const std::string wanted = user.substr(0, colon);
  const std::string wanted_group = colon == std::string::npos ? "" : user.substr(colon + 1);
  const auto uid = number_in(wanted);
  std::optional<Account> account;
  each_line(passwd, 6, [&](const std::vector<std::string_view>& fields) {
    const auto entry_uid = number_in(fields[2]);
    const auto entry_gid = number_in(fields[3]);
    if (!account && entry_uid && entry_gid && (fields[0] == wanted || entry_uid == uid)) {
      account = Account{{*entry_uid, *entry_gid, {}}, std::string(fields[0]), std::string(fields[5])};
    }
  });
  if (!account && uid) {
    account = Account{{*uid, *uid, {}}, "", "/"};
  }
  if (!account) {
    return fail(ErrorCode::no_such_user, fmt::format("User not found in the container: {}", wanted));
  }
  Identity& identity = account->identity;
  std::optional<gid_t> chosen = number_in(wanted_group);
  each_line(group, 4, [&](const std::vector<std::string_view>& fields) {
    const auto gid = number_in(fields[2]);
    if (gid && lists(fields[3], account->name)) {
      identity.groups.push_back(*gid);
    }
    if (gid && !chosen && !wanted_group.empty() && fields[0] == wanted_group) {
      chosen = gid;
    }
  });
  if (!wanted_group.empty() && !chosen) {
    return fail(ErrorCode::no_such_user, fmt::format("Group not found in the container: {}", wanted_group));
  }
  identity.gid = chosen.value_or(identity.gid);
  return *account;
}

Result<Account> find_account(const std::string& user) {
  // An image may lack both files. Numbers are valid without them.
  const auto passwd = read_file_at(AT_FDCWD, "/etc/passwd", k_max_database_bytes);
  const auto group = read_file_at(AT_FDCWD, "/etc/group", k_max_database_bytes);
  return find_account(user, passwd ? *passwd : "", group ? *group : "");
}

std::string own_home() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/' && is_valid_utf8(home)) {
    return home;
  }
  const auto account = find_account(std::to_string(::geteuid()));
  return account && !account->home.empty() ? account->home : "/";
}

std::string expand_home(const std::string& path, const std::string& home) {
  return path == "~" || path.starts_with("~/") ? home + path.substr(1) : path;
}

}  // namespace dockbridge::agent
