#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/write_order.hpp"

namespace dockbridge::agent {

/// The order of a process's output in memory that is shared with readers: part of the header of the stderr spool, see
/// docs/agent-protocol.md. Keeps the first marks and the latest; those between are overwritten, and their order is then
/// unknown. A process that never wrote to stderr has none.
///
/// One writer. Readers may read at any time, and any process of the container may have changed the content: no value in
/// it leads outside of it, and marks that go back are skipped.
class OrderPage {
 public:
  /// Stderr has `err` bytes, the last of which were written after `out` bytes of stdout.
  void note(std::uint64_t out, std::uint64_t err);
  [[nodiscard]] wire::WriteOrder marks() const;

 private:
  static constexpr std::size_t k_first_marks = 123;
  static constexpr std::size_t k_latest_marks = 128;  // a ring; the one that is overwritten next does not count

  static std::size_t slot(std::uint64_t number) {
    return number < k_first_marks ? number : k_first_marks + (number - k_first_marks) % k_latest_marks;
  }

  std::uint64_t m_count = 0;  // marks made so far
  std::uint64_t m_reserved = 0;
  std::array<wire::OrderMark, k_first_marks + k_latest_marks> m_marks{};
};

}  // namespace dockbridge::agent
