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

/// Rules of one .gitignore or .ignore file, as git applies them: the last rule that matches decides. Immutable.
class IgnoreFile {
 public:
  enum class Verdict : std::uint8_t { none, ignored, wanted };

  IgnoreFile() = default;
  /// Leaves out invalid lines, as git does.
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

/// Memory limit for the ignore files of a walk. A file that does not fit is not honoured, and counted.
struct IgnoreBudget {
  std::atomic<std::int64_t> bytes_left{8L * 1024 * 1024};
  std::atomic<std::uint64_t> files_left_out{0};
};

/// Rules that apply in a directory: those of its own files and of the directories above, up to the root of its
/// repository. .ignore has precedence over .gitignore, and that over .git/info/exclude. They also apply without a .git.
/// Immutable; shared by the threads of a walk, which must not outlive its budget.
class IgnoreRules {
 public:
  using Shared = std::shared_ptr<const IgnoreRules>;

  /// Files that may exist in a directory. One that is set but does not exist costs a system call.
  struct Sources {
    bool ignore = true;
    bool git_ignore = true;
    bool git = true;
  };

  /// Adds the rules of `directory_fd` to `above`. The first `base_bytes` of the paths that are judged lead to this
  /// directory.
  static Shared enter(Shared above, int directory_fd, std::size_t base_bytes, Sources sources, IgnoreBudget& budget);

  /// Reads the rules of the directories above `start_fd`, up to the root of its repository or else of the file system,
  /// but not above `top_fd` if that is not -1. Sets `lead` to the path from there to the start ("src/lib/"), which is
  /// the prefix of all paths that are judged. Null if the start has no name in /proc.
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
