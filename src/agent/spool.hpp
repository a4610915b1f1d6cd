#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/process_state.hpp"
#include "wire/write_order.hpp"

namespace dockbridge::agent {

/// Capacity for a stream: its first `head` bytes and its last `tail` bytes are stored.
struct SpoolCaps {
  std::uint64_t head = 16ULL * 1024 * 1024;
  std::uint64_t tail = 16ULL * 1024 * 1024;
};

/// Largest capacity of a part that a reader accepts. Processes of the container can write the header, so its values
/// must not decide how much is read.
inline constexpr std::uint64_t k_max_spool_cap = 256ULL * 1024 * 1024;

struct SpoolHeader;  // first page of the file, see docs/agent-protocol.md

/// Writes one stream of a process to a file of bounded size: a head, and a ring for the tail. The file is created with
/// the first byte. Never fails: bytes that cannot be stored because the disk is full are counted as a gap.
class SpoolWriter {
 public:
  /// Borrows `directory_fd`.
  SpoolWriter(int directory_fd, std::string name, SpoolCaps caps);
  ~SpoolWriter();
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;

  void append(std::string_view bytes);
  /// For stderr: records that the last append was written after `out_total` bytes of stdout.
  void note_order(std::uint64_t out_total);
  /// Limits the disk space to about so many bytes from now on. Bytes between the first and the last part are discarded
  /// and counted as a gap. This cannot be reverted.
  void trim(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t total() const { return m_total; }

 private:
  void create();
  void free_gap();
  bool store(std::string_view bytes, std::uint64_t offset);
  void publish();

  int m_directory_fd;
  std::string m_name;
  SpoolCaps m_caps;    // layout of the file
  SpoolCaps m_limits;  // the part of it that is used
  Fd m_file;
  SpoolHeader* m_header = nullptr;
  std::uint64_t m_total = 0;
  std::uint64_t m_head_end = 0;
  std::uint64_t m_tail_start = 0;
  bool m_is_trimmed = false;
  std::uint64_t m_freed = 0;  // disk space is freed up to this offset
};

/// Reads a spool, also while its writer is writing, and after the writer has ended.
class SpoolReader {
 public:
  /// A spool that does not exist, or is being created, reads as an empty stream.
  static Result<SpoolReader> open(int directory_fd, const std::string& name);

  [[nodiscard]] bool exists() const { return static_cast<bool>(m_file); }
  Result<wire::StreamState> state() const;
  /// In the spool of stderr: the order of both streams, empty if it is unknown. It is at least as new as states that
  /// were read before it.
  Result<wire::WriteOrder> order() const;
  /// Time of the last append, as `Moment::uptime_ms`; 0 if it is unknown.
  Result<std::int64_t> changed_at() const;

  struct Slice {
    std::uint64_t offset = 0;  ///< of the first byte; after the requested one if that is in the gap
    std::string bytes;
    wire::StreamState state;
  };
  /// Reads at most `max` bytes from `offset` on, never across the gap.
  Result<Slice> read(std::uint64_t offset, std::size_t max) const;

 private:
  Fd m_file;
};

}  // namespace dockbridge::agent
