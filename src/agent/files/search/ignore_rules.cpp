#include "agent/files/search/ignore_rules.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <climits>
#include <optional>

#include "agent/files/search/open_beneath.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_file_bytes = 1024 * 1024;
/// Approximate memory of a directory with rules, and of a line beside its bytes.
constexpr std::int64_t k_level_cost = 4096;
constexpr std::int64_t k_line_cost = 160;
constexpr std::size_t k_max_levels_above = 256;

/// Empty if the file does not exist, is not a regular file, or is too large. The latter counts as left out.
std::string read_rules(int directory_fd, std::string_view name, IgnoreBudget& budget) {
  const Fd file = open_beneath(directory_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return {};
  }
  std::string content;
  std::array<char, 16 * 1024> piece{};
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got <= 0) {
      return content;
    }
    content.append(piece.data(), static_cast<std::size_t>(got));
    if (content.size() > k_max_file_bytes) {
      ++budget.files_left_out;
      return {};
    }
  }
}

std::int64_t cost_of(const std::string& content) {
  return static_cast<std::int64_t>(content.size()) * 2 +
         k_line_cost * (1 + std::count(content.begin(), content.end(), '\n'));
}

/// Removes the spaces at the end that no backslash quotes.
std::string_view without_trailing_spaces(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\\' && at + 1 < line.size()) {
      ++at;
      end = at + 1;
    } else if (line[at] != ' ') {
      end = at + 1;
    }
  }
  return line.substr(0, end);
}

}  // namespace

IgnoreFile::IgnoreFile(std::string_view content) {
  if (content.starts_with("\xef\xbb\xbf")) {
    content.remove_prefix(3);
  }
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    line = without_trailing_spaces(line);
    if (line.empty() || line[0] == '#') {
      continue;
    }
    Rule rule;
    if (line[0] == '!') {
      rule.negated = true;
      line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
      rule.directories_only = true;
      line.remove_suffix(1);
    }
    rule.is_path = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) {
      line.remove_prefix(1);
    }
    if (line.empty()) {
      continue;
    }
    if (auto wildcard = Wildcard::compile(line)) {
      rule.wildcard = std::move(*wildcard);
      m_rules.push_back(std::move(rule));
    }
  }
}

IgnoreFile::Verdict IgnoreFile::judge(std::string_view path, bool is_directory) const {
  const std::string_view name = base_name(path);
  const auto found = std::find_if(m_rules.rbegin(), m_rules.rend(), [&](const Rule& rule) {
    return (is_directory || !rule.directories_only) && rule.wildcard.matches(rule.is_path ? path : name);
  });
  if (found == m_rules.rend()) {
    return Verdict::none;
  }
  return found->negated ? Verdict::wanted : Verdict::ignored;
}

IgnoreRules::IgnoreRules(Shared above, std::size_t base_bytes, std::int64_t cost, IgnoreBudget& budget)
    : m_above(std::move(above)), m_base_bytes(base_bytes), m_cost(cost), m_budget(&budget) {
  m_budget->bytes_left -= m_cost;
}

IgnoreRules::Shared IgnoreRules::enter(Shared above, int directory_fd, std::size_t base_bytes, Sources sources,
                                       IgnoreBudget& budget) {
  std::string ignore;
  std::string git_ignore;
  std::string exclude;
  if (sources.ignore) {
    ignore = read_rules(directory_fd, ".ignore", budget);
  }
  if (sources.git_ignore) {
    git_ignore = read_rules(directory_fd, ".gitignore", budget);
  }
  struct stat info {};
  const bool is_repository = sources.git && ::fstatat(directory_fd, ".git", &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_repository) {
    exclude = read_rules(directory_fd, ".git/info/exclude", budget);
  }
  if (ignore.empty() && git_ignore.empty() && !is_repository) {
    return above;
  }
  const std::int64_t cost = k_level_cost + cost_of(ignore) + cost_of(git_ignore) + cost_of(exclude);
  if (budget.bytes_left < cost) {
    ++budget.files_left_out;
    return above;
  }
  auto rules = std::make_shared<IgnoreRules>(std::move(above), base_bytes, cost, budget);
  rules->m_ignore = IgnoreFile(ignore);
  rules->m_git_ignore = IgnoreFile(git_ignore);
  rules->m_exclude = IgnoreFile(exclude);
  rules->m_is_repository = is_repository;
  return rules;
}

IgnoreRules::Shared IgnoreRules::above_start(int start_fd, int top_fd, std::string& lead, IgnoreBudget& budget) {
  lead.clear();
  std::array<char, PATH_MAX> buffer{};
  const std::string link = "/proc/self/fd/" + std::to_string(start_fd);
  const ssize_t length = ::readlink(link.c_str(), buffer.data(), buffer.size());
  if (length <= 1 || length == static_cast<ssize_t>(buffer.size())) {
    return nullptr;
  }
  std::string_view path(buffer.data(), static_cast<std::size_t>(length));
  const auto identity = [](int fd) {
    struct stat info {};
    return fd >= 0 && ::fstat(fd, &info) == 0 ? std::optional(std::pair(info.st_dev, info.st_ino)) : std::nullopt;
  };
  const auto top = identity(top_fd);
  const auto is_root_of_repository = [](int fd) {
    struct stat info {};
    return ::fstatat(fd, ".git", &info, AT_SYMLINK_NOFOLLOW) == 0;
  };
  std::vector<Fd> directories;  // the nearest first
  std::vector<std::string_view> names;
  int current = start_fd;
  while (directories.size() < k_max_levels_above && path.size() > 1 && path.find('/') != std::string_view::npos &&
         !(top && identity(current) == top) && !is_root_of_repository(current)) {
    Fd parent(::openat(current, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!parent) {
      break;
    }
    names.push_back(base_name(path));
    path = path.substr(0, path.rfind('/'));
    current = parent.get();
    directories.push_back(std::move(parent));
  }
  Shared rules;
  for (std::size_t i = directories.size(); i-- > 0;) {
    rules = enter(std::move(rules), directories[i].get(), lead.size(), {}, budget);
    lead += std::string(names[i]) + "/";
  }
  if (!rules) {
    lead.clear();
  }
  return rules;
}

bool IgnoreRules::ignored(std::string_view path, bool is_directory) const {
  using Verdict = IgnoreFile::Verdict;
  const auto judge = [&](const IgnoreRules& level, const IgnoreFile& file) {
    return file.empty() ? Verdict::none : file.judge(path.substr(level.m_base_bytes), is_directory);
  };
  for (const IgnoreRules* level = this; level != nullptr; level = level->m_above.get()) {
    if (const Verdict verdict = judge(*level, level->m_ignore); verdict != Verdict::none) {
      return verdict == Verdict::ignored;
    }
  }
  for (const IgnoreRules* level = this; level != nullptr; level = level->m_above.get()) {
    if (const Verdict verdict = judge(*level, level->m_git_ignore); verdict != Verdict::none) {
      return verdict == Verdict::ignored;
    }
    if (level->m_is_repository) {
      return judge(*level, level->m_exclude) == Verdict::ignored;
    }
  }
  return false;
}

}  // namespace dockbridge::agent
