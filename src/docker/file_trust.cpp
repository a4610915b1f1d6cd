#include "docker/file_trust.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "docker/tar.hpp"

namespace dockbridge::docker {

namespace {

namespace fs = std::filesystem;
using sandbox::Trust;
using Verdict = Trust::Verdict;

/// Bytes of an archive to skip in search of the next directory. Reading them costs about as much as another request.
constexpr std::size_t k_max_passed_bytes = 8 * 1024 * 1024;
constexpr const char* k_absent = "No such file or directory";
/// Sorts before the agent's name.
constexpr const char* k_probe_name = ".owner";
/// Not root. An archive that has another uid beside this one reports real owners.
constexpr std::uint64_t k_probe_uid = 1;
constexpr unsigned k_write_by_others = 022;
constexpr unsigned k_execute_by_all = 0111;

bool is_at_or_below(const std::string& path, const std::string& directory) {
  const auto relative = fs::path(path).lexically_relative(directory);
  return !relative.empty() && *relative.begin() != "..";
}

/// Examines the directories from "/" down, then the owner probe and the file. One archive serves for several steps if
/// they come early in it.
class Examination {
 public:
  Examination(const sandbox::ContainerRun& run, const fs::path& path, std::string_view content)
      : m_run(run), m_content(content) {
    fs::path step = "/";
    for (const fs::path& name : path.parent_path().relative_path()) {
      m_steps.push_back(step);
      step /= name;
    }
    m_steps.push_back(step);
    m_steps.push_back(path.parent_path() / k_probe_name);
    m_steps.push_back(path);
  }

  Result<Trust> run(Engine& engine, Deadline deadline) {
    while (!m_verdict) {
      const std::size_t before = m_members.size();
      if (auto read = read_archive(engine, deadline); !read) {
        return read.error().code == ErrorCode::no_such_file ? Result<Trust>(verdict_if_absent()) : fail(read.error());
      }
      if (!m_verdict && m_members.size() == before) {
        return fail(ErrorCode::engine_error, fmt::format("The engine sent no archive of {}", next_step().string()));
      }
    }
    return *m_verdict;
  }

 private:
  Result<void> read_archive(Engine& engine, Deadline deadline) {
    const fs::path top = next_step();
    TarReader reader(m_content);
    std::size_t passed = 0;
    Result<bool> more = true;
    // For "/", podman's command sends the content of the directory, and for "//" the directory itself.
    auto read = engine.get_archive(
        m_run.id, top == "/" ? "//" : top.string(),
        [&](std::string_view bytes) {
          passed += bytes.size();
          reader.feed(bytes);
          more = examine_members(reader, top);
          return more && *more && passed <= m_content.size() + k_max_passed_bytes;
        },
        deadline);
    return more ? read : fail(more.error());
  }

  /// False if the rest of the archive is not needed.
  Result<bool> examine_members(TarReader& reader, const fs::path& top) {
    while (!m_verdict) {
      auto member = reader.next();
      if (!member) {
        return fail(member.error());
      }
      if (!*member) {
        return true;
      }
      const fs::path name = top.parent_path() / (*member)->name;
      if (name == next_step()) {
        examine(std::move(**member));
      } else if (next_step() == top || name > next_step()) {
        return false;  // names are sorted, and a directory precedes its entries
      }
    }
    return false;
  }

  [[nodiscard]] const fs::path& next_step() const { return m_steps[m_members.size()]; }

  void examine(TarMember member) {
    const std::string path = next_step().string();
    const std::size_t left = m_steps.size() - m_members.size();
    if (left > 2 && member.type != TarMember::k_directory) {
      m_verdict = Trust{Verdict::unsafe, path + " is not a directory"};
    } else if (left > 2 && (member.mode & k_write_by_others) != 0) {
      m_verdict = Trust{Verdict::unsafe, path + " is writable by other users"};
    }
    m_members.push_back(std::move(member));
    if (!m_verdict && left == 1) {
      m_verdict = verdict_on_all();
    }
  }

  [[nodiscard]] bool is_foreign(const TarMember& member) const { return member.uid != 0 && member.uid != m_run.uid; }

  /// The first directory, from the given step on, that belongs to another user.
  [[nodiscard]] std::optional<Trust> foreign_directory(std::size_t first) const {
    for (std::size_t i = first; i < std::min(m_members.size(), m_steps.size() - 2); ++i) {
      if (is_foreign(m_members[i])) {
        return Trust{Verdict::unsafe, fmt::format("{} belongs to uid {}", m_steps[i].string(), m_members[i].uid)};
      }
    }
    return std::nullopt;
  }

  /// Without the probe it is unknown whether owners are real. The owner of "/" is not checked: see `examine_file`.
  [[nodiscard]] Trust verdict_if_absent() const {
    return foreign_directory(1).value_or(Trust{Verdict::replaceable, k_absent});
  }

  [[nodiscard]] Trust verdict_on_all() const {
    const TarMember& probe = m_members[m_members.size() - 2];
    const TarMember& file = m_members.back();
    const bool is_same = (file.mode & k_write_by_others) == 0 && (file.mode & k_execute_by_all) == k_execute_by_all &&
                         file.has_expected_content;
    const bool shows_owners =
        probe.uid == k_probe_uid && std::any_of(m_members.begin(), m_members.end(),
                                                [](const TarMember& member) { return member.uid != k_probe_uid; });
    if (const auto foreign = shows_owners ? foreign_directory(0) : std::nullopt) {
      return *foreign;
    }
    if (!is_same || (shows_owners && is_foreign(file))) {
      return {Verdict::replaceable, "its owner, mode or content is not the agent's"};
    }
    return shows_owners ? Trust{Verdict::trusted}
                        : Trust{Verdict::unattributed, "the engine does not report its owner"};
  }

  const sandbox::ContainerRun& m_run;
  std::string_view m_content;
  std::vector<fs::path> m_steps;     // directories from "/" on, the probe, the file
  std::vector<TarMember> m_members;  // those of the steps so far
  std::optional<Trust> m_verdict;
};

}  // namespace

TarEntry owner_probe(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return {folder + k_probe_name, 0444, {}, k_probe_uid};
}

Result<Trust> examine_file(Engine& engine, const sandbox::ContainerRun& run, const std::string& path,
                           std::string_view content, Deadline deadline) {
  const auto hidden = std::find_if(run.hidden.begin(), run.hidden.end(),
                                   [&](const std::string& mount) { return is_at_or_below(path, mount); });
  if (hidden != run.hidden.end()) {
    return Trust{Verdict::unsafe, fmt::format("{} is a mount that the engine cannot examine", *hidden)};
  }
  const auto absent = engine.is_known_absent(run.id, path, deadline);
  if (!absent) {
    return fail(absent.error());
  }
  // Nothing is placed below a directory that others can change. "/" is the exception, which saves an archive in every
  // new container: a user who can change "/" controls the whole container anyway.
  if (*absent && fs::path(path).parent_path().parent_path() == "/") {
    return Trust{Verdict::replaceable, k_absent};
  }
  return Examination(run, path, content).run(engine, deadline);
}

}  // namespace dockbridge::docker
