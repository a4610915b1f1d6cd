#pragma once

#include <cstdint>
#include <vector>

#include "agent/control/packets.hpp"
#include "agent/record.hpp"

namespace dockbridge::agent {

/// The input that a process has received under each of the latest idempotency keys. No I/O.
class TakenInputs {
 public:
  explicit TakenInputs(std::vector<TakenInput> taken = {}) : m_taken(std::move(taken)) {}

  struct Found {
    Before before = Before::no;  ///< if it is not `no`, the order must not be executed
    std::uint64_t units = 0;     ///< how many of the units that were sent had been taken before
  };
  [[nodiscard]] Found find(const OnceHeader& header, std::uint64_t units) const;
  /// Records that so many units have been taken now.
  void add(const OnceHeader& header, std::uint64_t units);
  [[nodiscard]] OnceAnswer answer(const OnceHeader& header, Before before) const;

  [[nodiscard]] const std::vector<TakenInput>& all() const { return m_taken; }

 private:
  std::vector<TakenInput> m_taken;
};

}  // namespace dockbridge::agent
