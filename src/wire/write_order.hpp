#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "error/error.hpp"
#include "wire/fields.hpp"

namespace dockbridge::wire {

/// The end of a run of stderr: stderr up to `err` was written after stdout up to `out`, and before any later stdout.
struct OrderMark {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};

/// The order in which a process wrote to its two streams, as far as it is known: marks that never go back. Between two
/// marks stdout comes first, then stderr; so it does after the last mark. Leaving out a mark loses order, but no bytes.
using WriteOrder = std::vector<OrderMark>;

/// Largest number of marks that are kept of a process.
inline constexpr std::size_t k_max_order_marks = 256;

/// A flat array: out, err, out, err, and so on.
nlohmann::json to_json(const WriteOrder& order);
/// Checks number, types, ranges and that no mark goes back: the sender is not trusted.
WriteOrder write_order_from(const Field& field);
Result<WriteOrder> write_order_from_json(const nlohmann::json& value);

}  // namespace dockbridge::wire
