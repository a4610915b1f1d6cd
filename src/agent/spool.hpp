#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/process_state.hpp"
#include "wire/write_order.hpp"

namespace dockbridge::agent {

/// How much of a stream is kept: its first `head` bytes and its last `tail` bytes.
struct SpoolCaps {
  std::uint64_t head = 16ULL * 1024 * 1024;
  std::uint64_t tail = 16ULL * 1024 * 1024;
};

/// Largest capacity of a part that a reader accepts. Processes of the container can write the header, so its values
/// must not decide how much is read.
inline constexpr std::uint64_t k_max_spool_cap = 256ULL * 1024 * 1024;

struct SpoolHeader;  // the file's first page, see docs/agent-protocol.md

/// Writes one stream of a process to a file of bounded size: a head, and a ring for the tail.
/// The file appears with the first byte. Never fails: what cannot be stored (disk full) is counted as a gap.
class SpoolWriter {
 public:
  /// Borrows `directory_fd`.
  SpoolWriter(int directory_fd, std::string name, SpoolCaps caps);
  ~SpoolWriter();
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;

  void append(std::string_view bytes);
  /// For stderr: notes that what was appended last was written after `out_total` bytes of stdout.
  void note_order(std::uint64_t out_total);
  /// From now on takes up no more than about so much of the disk: what lies between the first and the last part of it
  /// is given up, and counted as a gap. There is no way back.
  void trim(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t total() const { return m_total; }

 private:
  void create();
  void give_up_gap();
  bool store(std::string_view bytes, std::uint64_t offset);
  void publish();

  int m_directory_fd;
  std::string m_name;
  SpoolCaps m_caps;    // what the file has room for
  SpoolCaps m_limits;  // how much of that is used
  Fd m_file;
  SpoolHeader* m_header = nullptr;
  std::uint64_t m_total = 0;
  std::uint64_t m_head_end = 0;
  std::uint64_t m_tail_start = 0;
  bool m_is_trimmed = false;
  std::uint64_t m_given_up = 0;  // up to here
};

/// Reads a spool while its writer may be writing, also long after the writer is gone.
class SpoolReader {
 public:
  /// A spool that does not exist, or is only just being made, reads as an empty stream.
  static Result<SpoolReader> open(int directory_fd, const std::string& name);

  [[nodiscard]] bool exists() const { return static_cast<bool>(m_file); }
  Result<wire::StreamState> state() const;
  /// In the spool of stderr: the order of both streams. Take the states of both first: then this is at least as new.
  /// Empty if nothing is known of it.
  Result<wire::WriteOrder> order() const;
  /// When something was appended last, as `Moment::uptime_ms`; 0 if that is not known.
  Result<std::int64_t> changed_at() const;

  struct Slice {
    std::uint64_t offset = 0;  ///< of the first byte; beyond what was asked for where the gap swallowed it
    std::string bytes;
    wire::StreamState state;
  };
  /// At most `max` bytes from `offset` on, never across the gap.
  Result<Slice> read(std::uint64_t offset, std::size_t max) const;

 private:
  Fd m_file;
};

}  // namespace dockbridge::agent
