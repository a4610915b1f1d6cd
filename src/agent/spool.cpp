#include "agent/spool.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "agent/order_page.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

struct SpoolHeader {
  std::array<char, 8> magic;
  std::uint64_t head_cap;
  std::uint64_t tail_cap;
  std::uint64_t total;
  std::uint64_t head_end;
  std::uint64_t tail_start;
  std::int64_t changed_at;
};

namespace {

constexpr std::array<char, 8> k_spool_magic = {'D', 'B', 'S', 'P', 'O', 'O', 'L', '1'};
constexpr std::uint64_t k_header_bytes = 4096;

/// The order of both streams is stored behind the other fields, up to the end of the header.
constexpr std::uint64_t k_order_offset = k_header_bytes - sizeof(OrderPage);
static_assert(k_order_offset >= sizeof(SpoolHeader));

/// Unit in which disk space is freed.
constexpr std::uint64_t k_disk_block_bytes = 4096;
/// Each part keeps at least so much, even with a lower limit.
constexpr std::uint64_t k_min_part_bytes = 16 * k_disk_block_bytes;

OrderPage& order_in(SpoolHeader* header) {
  return *reinterpret_cast<OrderPage*>(reinterpret_cast<char*>(header) + k_order_offset);
}

template <typename Number>
void set(Number& field, Number value) {
  std::atomic_ref<Number>(field).store(value, std::memory_order_release);
}

/// Position of a byte of the stream in the file, and the number of bytes that are contiguous from there.
struct Place {
  std::uint64_t position;
  std::uint64_t room;
};

Place place_of(std::uint64_t offset, std::uint64_t head_cap, std::uint64_t tail_cap) {
  if (offset < head_cap) {
    return {k_header_bytes + offset, head_cap - offset};
  }
  const std::uint64_t in_ring = (offset - head_cap) % tail_cap;
  return {k_header_bytes + head_cap + in_ring, tail_cap - in_ring};
}

bool write_fully(int fd, std::string_view bytes, std::uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
  return true;
}

/// Whether a SpoolWriter could have written this header. Any process may have changed the file. The offsets are at
/// least as new as `total`, so the stored bytes never exceed the capacity of both parts.
bool is_sound(const SpoolHeader& header) {
  const auto is_cap = [](std::uint64_t cap) { return cap >= 1 && cap <= k_max_spool_cap; };
  return header.magic == k_spool_magic && is_cap(header.head_cap) && is_cap(header.tail_cap) &&
         header.total <= wire::k_max_stream_bytes && header.head_end <= header.head_cap &&
         header.total - std::min(header.tail_start, header.total) <= header.head_cap + header.tail_cap &&
         header.changed_at >= 0 && header.changed_at <= wire::k_max_time_ms;
}

/// Reads `total` before the other fields, because the writer publishes it after them. So they are at least as new as
/// `total`, and no byte before it can look like a gap.
Result<SpoolHeader> read_header(int fd) {
  SpoolHeader header{};
  std::uint64_t total = 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool has_total = ::pread(fd, &total, sizeof total, offsetof(SpoolHeader, total)) == sizeof total;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool has_rest = ::pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
  header.total = total;
  if (!has_total || !has_rest || !is_sound(header)) {
    return fail(ErrorCode::spool_damaged, "The stored output has no valid header");
  }
  return header;
}

}  // namespace

SpoolWriter::SpoolWriter(int directory_fd, std::string name, SpoolCaps caps)
    : m_directory_fd(directory_fd), m_name(std::move(name)), m_caps(caps), m_limits(caps) {}

SpoolWriter::~SpoolWriter() {
  if (m_header != nullptr) {
    ::munmap(m_header, k_header_bytes);
  }
}

void SpoolWriter::create() {
  Fd file(::openat(m_directory_fd, m_name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  // Written, and not extended with ftruncate: writing to a mapped hole raises SIGBUS when the disk is full.
  std::array<char, k_header_bytes> page{};
  SpoolHeader header{k_spool_magic, m_caps.head, m_caps.tail, 0, 0, 0, 0};
  std::memcpy(page.data(), &header, sizeof header);
  if (!file) {
    return;
  }
  void* mapped = write_fully(file.get(), {page.data(), page.size()}, 0)
                     ? ::mmap(nullptr, k_header_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0)
                     : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    // An incomplete header would make the process unreadable. The next append retries.
    ::unlinkat(m_directory_fd, m_name.c_str(), 0);
    return;
  }
  m_header = static_cast<SpoolHeader*>(mapped);
  m_file = std::move(file);
}

bool SpoolWriter::store(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const Place place = place_of(offset, m_caps.head, m_caps.tail);
    const auto part = bytes.substr(0, place.room);
    if (!write_fully(m_file.get(), part, place.position)) {
      return false;
    }
    bytes.remove_prefix(part.size());
    offset += part.size();
  }
  return true;
}

void SpoolWriter::append(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  if (m_header == nullptr) {
    create();
  }
  const std::uint64_t begin = m_total;
  const std::uint64_t end = begin + bytes.size();
  const bool gapless = m_head_end == m_tail_start;
  if (end > m_limits.head + m_limits.tail) {
    // Published before the ring is overwritten, so that a reader never mistakes new bytes for old ones.
    m_tail_start = std::max(m_tail_start, end - m_limits.tail);
    publish();
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  const bool stored = m_header != nullptr && store(bytes, begin);
  m_total = end;
  if (!stored) {
    m_tail_start = end;
  } else if (gapless && begin < m_limits.head) {
    m_head_end = std::min(end, m_limits.head);
    m_tail_start = std::max(m_tail_start, m_head_end);
  }
  publish();
  if (m_is_trimmed) {
    free_gap();
  }
}

void SpoolWriter::note_order(std::uint64_t out_total) {
  if (m_header != nullptr) {
    order_in(m_header).note(out_total, m_total);
  }
}

void SpoolWriter::trim(std::uint64_t bytes) {
  const std::uint64_t part = std::max(bytes / 2 / k_disk_block_bytes * k_disk_block_bytes, k_min_part_bytes);
  m_limits = {std::min(m_limits.head, part), std::min(m_limits.tail, part)};
  const bool gapless = m_head_end == m_tail_start;
  m_head_end = std::min(m_head_end, m_limits.head);
  const std::uint64_t stored_from = gapless ? m_head_end : m_tail_start;
  m_tail_start = std::max(stored_from, m_total - std::min(m_total, m_limits.tail));
  publish();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  m_is_trimmed = true;
  free_gap();
}

/// Frees the disk space of the gap in whole blocks. If the file system has no holes, the file only stays larger.
void SpoolWriter::free_gap() {
  const std::uint64_t from =
      (std::max(m_freed, m_head_end) + k_disk_block_bytes - 1) / k_disk_block_bytes * k_disk_block_bytes;
  const std::uint64_t to = m_tail_start / k_disk_block_bytes * k_disk_block_bytes;
  if (m_header == nullptr || from >= to) {
    return;
  }
  m_freed = to;
  // Earlier bytes in the ring have been overwritten.
  const std::uint64_t ring_from = std::max({from, m_caps.head, m_total - std::min(m_total, m_caps.tail)});
  for (auto [begin, end] : {std::pair(from, std::min(to, m_caps.head)), std::pair(ring_from, to)}) {
    while (begin < end) {
      const Place place = place_of(begin, m_caps.head, m_caps.tail);
      const std::uint64_t size = std::min(place.room, end - begin);
      ::fallocate(m_file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place.position),
                  static_cast<off_t>(size));
      begin += size;
    }
  }
}

/// Publishes `total` last, see read_header.
void SpoolWriter::publish() {
  if (m_header != nullptr) {
    set(m_header->tail_start, m_tail_start);
    set(m_header->head_end, m_head_end);
    set(m_header->changed_at, uptime_milliseconds_now());
    set(m_header->total, m_total);
  }
}

Result<SpoolReader> SpoolReader::open(int directory_fd, const std::string& name) {
  SpoolReader reader;
  reader.m_file = open_regular_at(directory_fd, name, O_RDONLY);
  if (!reader.m_file && errno != ENOENT) {
    return fail(errno_error("Cannot open the stored output"));
  }
  struct stat info {};
  if (reader.m_file && ::fstat(reader.m_file.get(), &info) == 0 && info.st_size == 0) {
    reader.m_file.reset();  // the writer has not written the header yet, or was killed before
  }
  return reader;
}

Result<wire::StreamState> SpoolReader::state() const {
  if (!m_file) {
    return wire::StreamState{};
  }
  const auto header = read_header(m_file.get());
  if (!header) {
    return fail(header.error());
  }
  const std::uint64_t tail_start = std::min(header->tail_start, header->total);
  return wire::StreamState{header->total, std::min(header->head_end, tail_start), tail_start};
}

Result<wire::WriteOrder> SpoolReader::order() const {
  OrderPage page;
  if (!m_file) {
    return wire::WriteOrder{};
  }
  if (::pread(m_file.get(), &page, sizeof page, k_order_offset) != static_cast<ssize_t>(sizeof page)) {
    return fail(ErrorCode::spool_damaged, "The stored output has no valid header");
  }
  return page.marks();
}

Result<std::int64_t> SpoolReader::changed_at() const {
  const Result<SpoolHeader> header = m_file ? read_header(m_file.get()) : SpoolHeader{};
  return header ? Result<std::int64_t>(header->changed_at) : fail(header.error());
}

Result<SpoolReader::Slice> SpoolReader::read(std::uint64_t offset, std::size_t max) const {
  const auto before = state();
  if (!before) {
    return fail(before.error());
  }
  Slice slice{offset, {}, *before};
  if (!m_file) {
    return slice;
  }
  const auto header = read_header(m_file.get());
  if (!header) {
    return fail(header.error());
  }
  if (offset >= before->head_end && offset < before->tail_start) {
    slice.offset = before->tail_start;
  }
  const std::uint64_t limit = slice.offset < before->head_end ? before->head_end : before->total;
  const std::uint64_t wanted = std::min<std::uint64_t>(max, limit - std::min(limit, slice.offset));
  slice.bytes.resize(wanted);
  std::uint64_t done = 0;
  while (done < wanted) {
    const Place place = place_of(slice.offset + done, header->head_cap, header->tail_cap);
    const ssize_t got = ::pread(m_file.get(), slice.bytes.data() + done, std::min(place.room, wanted - done),
                                static_cast<off_t>(place.position));
    if (got <= 0) {
      return fail(ErrorCode::spool_damaged, "The stored output is shorter than its header says");
    }
    done += static_cast<std::uint64_t>(got);
  }
  // The writer may have overwritten or freed some of these bytes in the meantime. Drop them.
  const auto after = state();
  if (!after) {
    return fail(after.error());
  }
  if (slice.offset < after->head_end) {
    slice.bytes.resize(std::min<std::uint64_t>(slice.bytes.size(), after->head_end - slice.offset));
  } else if (slice.offset < after->tail_start) {
    const std::uint64_t overwritten = std::min<std::uint64_t>(after->tail_start - slice.offset, slice.bytes.size());
    slice.bytes.erase(0, overwritten);
    slice.offset += overwritten;
  }
  slice.state = *after;
  return slice;
}

}  // namespace dockbridge::agent
