#include "agent/session/pruner.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "agent/record.hpp"
#include "agent/session/keeper_link.hpp"
#include "agent/spool.hpp"
#include "util/file.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

namespace {

constexpr milliseconds k_prune_interval{60'000};
constexpr std::uint64_t k_prune_starts = 500;
constexpr milliseconds k_size_interval{5000};

std::uint64_t bytes_on_disk(int directory_fd, const std::string& name) {
  constexpr std::uint64_t k_block_bytes = 512;
  struct stat info {};
  return ::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0
             ? static_cast<std::uint64_t>(info.st_blocks) * k_block_bytes
             : 0;
}

/// Size on disk of the output of all processes.
std::uint64_t stored_bytes(const StateDirectory& state) {
  std::uint64_t bytes = 0;
  for (const std::string& name : state.names()) {
    bytes += name.ends_with(".out") || name.ends_with(".err") || name.ends_with(".side")
                 ? bytes_on_disk(state.fd(), name)
                 : 0;
  }
  return bytes;
}

/// A process, and the size of its output on disk.
struct Stored {
  std::string process;
  std::uint64_t bytes;
};

Stored stored_by(int directory_fd, const std::string& process) {
  return {process, bytes_on_disk(directory_fd, out_name(process)) + bytes_on_disk(directory_fd, err_name(process)) +
                       bytes_on_disk(directory_fd, side_name(process))};
}

/// Time since the end of a process, as far as it is known; nullopt if the process may still run.
std::optional<milliseconds> finished_ago(const StateDirectory& state, const std::string& process,
                                         const Result<Record>& record, const Moment& now) {
  if (!record) {
    return record.error().code == ErrorCode::record_damaged ? std::optional(milliseconds::max()) : std::nullopt;
  }
  if (record->status && record->status->closed) {
    return age(record->status->ended, now);
  }
  const auto link = KeeperLink::find(state.fd(), process, *record, now);
  if (!link || *link) {
    return std::nullopt;
  }
  // The keeper may have written its last line after this record was read.
  if (const auto again = state.read(process); again && again->status) {
    return age(again->status->ended, now);
  }
  // The process did not end before its last output.
  Moment last = record->meta.started;
  for (const std::string& name : {out_name(process), err_name(process)}) {
    const auto spool = SpoolReader::open(state.fd(), name);
    last.uptime_ms = std::max(last.uptime_ms, spool ? spool->changed_at().value_or(0) : 0);
    struct stat info {};
    if (::fstatat(state.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
      last.unix_ms = std::max(last.unix_ms, file_milliseconds(info.st_mtim));
    }
  }
  return age(last, now);
}

void trim(const StateDirectory& state, const std::string& process, std::uint64_t bytes, const Moment& now) {
  const auto record = state.read(process);
  auto link = record ? KeeperLink::find(state.fd(), process, *record, now) : fail(record.error());
  if (link && *link) {
    // A keeper that does not receive this now gets it at the next prune.
    (void)(*link)->trim(static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX)));
  }
}

/// Removes what killed sessions and keepers left behind: first names of journals, sockets, and files of processes that
/// have no record.
void remove_leftovers(const StateDirectory& state, std::int64_t oldest) {
  for (const std::string& name : state.names()) {
    struct stat info {};
    if (::fstatat(state.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        file_milliseconds(info.st_mtim) > oldest) {
      continue;
    }
    const std::string process = name.substr(0, name.find('.'));
    const bool is_socket = name.starts_with(k_keeper_prefix) && !KeeperLink::is_listening(state.fd(), name);
    const bool is_orphan =
        process != name && wire::is_process_id(process) && ::faccessat(state.fd(), process.c_str(), F_OK, 0) != 0;
    if (state.is_foreign_journal(name) || is_socket || is_orphan) {
      ::unlinkat(state.fd(), name.c_str(), 0);
    }
  }
}

}  // namespace

void Pruner::prune_if_due(Clock::time_point now, std::uint64_t starts) {
  bool is_due = now >= m_next_prune || starts - m_starts >= k_prune_starts;
  if (!is_due && now >= m_next_size_check) {
    is_due = stored_bytes(m_state) > m_retention.bytes;
    m_next_size_check = now + k_size_interval;
  }
  if (is_due) {
    prune(agent::now());
    m_next_prune = now + k_prune_interval;
    m_starts = starts;
  }
}

void Pruner::prune(const Moment& now) const {
  const Fd lock = open_regular_at(m_state.fd(), "lock", O_RDWR | O_CREAT);
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return;
  }
  struct Finished {
    milliseconds ago;
    Stored stored;
  };
  std::vector<Finished> finished;
  std::vector<Stored> running;
  std::uint64_t bytes = 0;
  m_state.visit([&](const std::string& process, const Result<Record>& record) {
    Stored stored = stored_by(m_state.fd(), process);
    if (const auto ago = finished_ago(m_state, process, record, now)) {
      finished.push_back({*ago, std::move(stored)});
    } else {
      bytes += stored.bytes;
      running.push_back(std::move(stored));
    }
  });
  if (bytes > m_retention.bytes) {
    const std::uint64_t share = m_retention.bytes / running.size();
    for (const Stored& stored : running) {
      if (stored.bytes > share) {
        trim(m_state, stored.process, share, now);
      }
    }
  }
  std::sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.ago < b.ago; });
  std::vector<std::string> expired;
  for (std::size_t i = 0; i < finished.size(); ++i) {
    bytes += finished[i].stored.bytes;
    if (i >= m_retention.count || finished[i].ago > m_retention.age || bytes > m_retention.bytes) {
      expired.push_back(finished[i].stored.process);
    }
  }
  m_state.note_expired(expired);  // first, so that an id is never unknown
  for (const std::string& process : expired) {
    m_state.remove(process);
  }
  remove_leftovers(m_state, now.unix_ms - milliseconds(m_retention.age).count());
}

}  // namespace dockbridge::agent
