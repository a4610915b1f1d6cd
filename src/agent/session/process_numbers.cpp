#include "agent/session/process_numbers.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "agent/files/revision.hpp"
#include "util/file.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

namespace {

const std::string k_index_prefix = "numbers_";
/// The longest process id and a newline, rounded up. Part of the format of the state directory.
constexpr std::uint64_t k_slot_bytes = 72;
constexpr std::size_t k_max_open_indexes = 32;
/// Number of slots that stay on disk. Older slots are freed once in `k_free_interval` starts.
constexpr std::uint64_t k_kept_slots = 64 * 1024;
constexpr std::uint64_t k_free_interval = 4096;

/// An index that a full disk cut short inside a slot continues there. The slots behind that are shifted, but two of
/// them still never end in the same range of k_slot_bytes.
std::uint64_t number_of_slot(off_t end) {
  const auto number = static_cast<std::uint64_t>(end) / k_slot_bytes;
  return number <= wire::k_max_process_number ? number : 0;
}

/// The number of the new slot; 0 if it cannot be stored.
std::uint64_t append_slot(int index, const std::string& process) {
  std::array<char, k_slot_bytes> slot;
  slot.fill('\n');
  std::copy_n(process.begin(), std::min<std::size_t>(process.size(), k_slot_bytes - 1), slot.begin());
  if (::write(index, slot.data(), slot.size()) != static_cast<ssize_t>(slot.size())) {
    return 0;
  }
  // An append leaves the position of this descriptor, which no other process has, at the end of what it wrote.
  return number_of_slot(::lseek(index, 0, SEEK_CUR));
}

}  // namespace

int ProcessNumbers::index_of(const std::string& owner, bool may_create) {
  if (const auto known = m_indexes.find(owner); known != m_indexes.end()) {
    return known->second.get();
  }
  Fd index = open_regular_at(m_directory_fd, k_index_prefix + revision_of(owner),
                             O_RDWR | O_APPEND | (may_create ? O_CREAT : 0));
  if (!index) {
    return -1;
  }
  if (m_indexes.size() >= k_max_open_indexes) {
    m_indexes.clear();
  }
  return (m_indexes[owner] = std::move(index)).get();
}

std::uint64_t ProcessNumbers::assign(const std::string& owner, const std::string& process, std::uint64_t above) {
  const int index = index_of(owner, true);
  if (index < 0) {
    return 0;
  }
  std::uint64_t number = append_slot(index, process);
  if (number > 0 && number <= above && above < wire::k_max_process_number) {
    // Unlike ftruncate, this never makes the file shorter, whatever other sessions do at the same time.
    ::fallocate(index, 0, static_cast<off_t>(above * k_slot_bytes) - 1, 1);
    number = append_slot(index, process);
  }
  if (number % k_free_interval == 0 && number > k_kept_slots) {
    ::fallocate(index, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>((number - k_kept_slots) * k_slot_bytes));
  }
  return number;
}

std::vector<std::string> ProcessNumbers::candidates(const std::string& owner, std::uint64_t number) {
  std::vector<std::string> found;
  const int index = index_of(owner, false);
  if (index < 0 || number == 0 || number > wire::k_max_process_number) {
    return found;
  }
  // The slot, and the next one in case they are shifted.
  std::array<char, 2 * k_slot_bytes> slots;
  const ssize_t got = ::pread(index, slots.data(), slots.size(), static_cast<off_t>((number - 1) * k_slot_bytes));
  std::string_view text(slots.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (wire::is_process_id(line)) {
      found.emplace_back(line);
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return found;
}

bool ProcessNumbers::has(const std::string& owner, const std::string& process) {
  const int index = index_of(owner, false);
  struct stat info {};
  if (index < 0 || ::fstat(index, &info) != 0) {
    return false;
  }
  const std::string wanted = process + "\n";
  // Slots may be shifted, so text is searched. Chunks overlap by one slot, which is longer than any id.
  constexpr std::size_t k_chunk_bytes = 1024 * k_slot_bytes;
  constexpr auto k_kept_bytes = static_cast<off_t>((k_kept_slots + k_free_interval) * k_slot_bytes);
  std::vector<char> chunk(k_chunk_bytes + k_slot_bytes);
  const off_t freed = std::max<off_t>(info.st_size - k_kept_bytes, 0);
  for (off_t at = freed; at < info.st_size; at += static_cast<off_t>(k_chunk_bytes)) {
    const ssize_t got = ::pread(index, chunk.data(), chunk.size(), at);
    if (got <= 0) {
      return false;
    }
    const std::string_view text(chunk.data(), static_cast<std::size_t>(got));
    for (std::size_t found = text.find(wanted); found != std::string_view::npos; found = text.find(wanted, found + 1)) {
      const bool is_whole = found == 0 ? at == 0 : text[found - 1] == '\n' || text[found - 1] == '\0';
      if (is_whole) {
        return true;
      }
    }
  }
  return false;
}

std::uint64_t ProcessNumbers::highest(const std::string& owner) {
  const int index = index_of(owner, false);
  struct stat info {};
  return index >= 0 && ::fstat(index, &info) == 0 ? number_of_slot(info.st_size) : 0;
}

}  // namespace dockbridge::agent
