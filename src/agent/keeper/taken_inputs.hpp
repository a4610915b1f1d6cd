#pragma once

#include <cstdint>
#include <vector>

#include "agent/control/packets.hpp"
#include "agent/record.hpp"

namespace dockbridge::agent {

/// What a process was given under idempotency keys: the latest of them. No I/O.
class TakenInputs {
 public:
  static constexpr std::size_t k_most = 16;

  explicit TakenInputs(std::vector<TakenInput> taken = {}) : m_taken(std::move(taken)) {}

  /// How many of `units` that are sent have been taken already, and what else there is to answer. If `before` is not
  /// `no`, nothing is left to do: what was not taken then was told to who sent it.
  struct Found {
    Before before = Before::no;
    std::uint64_t units = 0;
  };
  [[nodiscard]] Found find(const OnceHeader& step, std::uint64_t units) const;
  /// So many units have been taken now.
  void add(const OnceHeader& step, std::uint64_t units);
  [[nodiscard]] OnceAnswer answer(const OnceHeader& step, Before before) const;

  [[nodiscard]] const std::vector<TakenInput>& all() const { return m_taken; }

 private:
  std::vector<TakenInput> m_taken;
};

}  // namespace dockbridge::agent
