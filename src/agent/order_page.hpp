#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/write_order.hpp"

namespace dockbridge::agent {

/// The order of a process's output, in memory that is shared with readers: a part of the header of the stderr spool,
/// see docs/agent-protocol.md. Keeps the first marks and the latest. Marks between them are overwritten, so the order
/// there is unknown. A process that never wrote to stderr has no marks.
///
/// One writer. Readers may read at any time, and any process of the container may have changed the content. So no value
/// leads out of the page, and marks that decrease are skipped.
class OrderPage {
 public:
  /// Records that stderr has `err` bytes, the last of which were written after `out` bytes of stdout.
  void note(std::uint64_t out, std::uint64_t err);
  [[nodiscard]] wire::WriteOrder marks() const;

 private:
  static constexpr std::size_t k_first_marks = 123;
  static constexpr std::size_t k_latest_marks = 128;  // a ring; the mark that is overwritten next does not count

  static std::size_t slot(std::uint64_t number) {
    return number < k_first_marks ? number : k_first_marks + (number - k_first_marks) % k_latest_marks;
  }

  std::uint64_t m_count = 0;  // marks so far
  std::uint64_t m_reserved = 0;
  std::array<wire::OrderMark, k_first_marks + k_latest_marks> m_marks{};
};

}  // namespace dockbridge::agent
