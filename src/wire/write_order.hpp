#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "wire/fields.hpp"

namespace dockbridge::wire {

/// The end of a run of stderr: stderr up to `err` was written after stdout up to `out`, and before any later stdout.
struct OrderMark {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};

/// The order in which a process wrote to its two streams, as far as it is known. The numbers of successive marks never
/// decrease. Between two marks, and after the last, stdout precedes stderr. Without a mark, order is lost, but no
/// bytes.
using WriteOrder = std::vector<OrderMark>;

/// Marks that are kept for a process.
inline constexpr std::size_t k_max_order_marks = 256;

/// A flat array: out, err, out, err, and so on.
nlohmann::json to_json(const WriteOrder& order);
WriteOrder write_order_from(const Field& field);

}  // namespace dockbridge::wire
