#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/search/glob.hpp"

namespace dockbridge::agent {

/// The lines of one .gitignore or .ignore file, with git's rules: the last that matches decides. Immutable.
class IgnoreFile {
 public:
  enum class Verdict : std::uint8_t { none, ignored, wanted };

  IgnoreFile() = default;
  /// A line that git could not match with anything is left out, as git does.
  explicit IgnoreFile(std::string_view content);

  /// `path` is relative to the directory of the file.
  [[nodiscard]] Verdict judge(std::string_view path, bool is_directory) const;
  [[nodiscard]] bool empty() const { return m_rules.empty(); }

 private:
  struct Rule {
    Wildcard wildcard;
    bool negated = false;
    bool directories_only = false;
    bool is_path = false;
  };

  std::vector<Rule> m_rules;
};

/// How much the ignore files of a walk may take at one time. What does not fit is not honoured, and counted.
struct IgnoreBudget {
  std::atomic<std::int64_t> bytes_left{8L * 1024 * 1024};
  std::atomic<std::uint64_t> files_left_out{0};
};

/// The rules that hold in a directory: those of its own files and of the directories above, up to the root of its
/// repository. .ignore goes before .gitignore, and that before .git/info/exclude. They hold without a .git, too.
/// Immutable; shared by the threads of a walk, which must not outlive its budget.
class IgnoreRules {
 public:
  using Shared = std::shared_ptr<const IgnoreRules>;

  /// Which files there are. Those that are said to be there but are not cost a system call.
  struct Sources {
    bool ignore = true;
    bool git_ignore = true;
    bool git = true;
  };

  /// `above`, with what `directory_fd` adds to it. Paths that are judged begin with `base_bytes` that lead to it.
  static Shared enter(Shared above, int directory_fd, std::size_t base_bytes, Sources sources, IgnoreBudget& budget);

  /// The rules of the directories above `start_fd`, up to the root of its repository or else of the file system, but
  /// not above `top_fd` if that is not -1. `lead` becomes what leads from there to the start ("src/lib/"), and goes
  /// before all paths that are judged. None if /proc is not there to tell the start's name.
  static Shared above_start(int start_fd, int top_fd, std::string& lead, IgnoreBudget& budget);

  [[nodiscard]] bool ignored(std::string_view path, bool is_directory) const;

  IgnoreRules(Shared above, std::size_t base_bytes, std::int64_t cost, IgnoreBudget& budget);
  IgnoreRules(const IgnoreRules&) = delete;
  IgnoreRules& operator=(const IgnoreRules&) = delete;
  ~IgnoreRules() { m_budget->bytes_left += m_cost; }

 private:
  Shared m_above;
  std::size_t m_base_bytes;
  std::int64_t m_cost;
  IgnoreBudget* m_budget;
  IgnoreFile m_ignore;
  IgnoreFile m_git_ignore;
  IgnoreFile m_exclude;
  bool m_is_repository = false;
};

}  // namespace dockbridge::agent
