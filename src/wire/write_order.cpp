#include "wire/write_order.hpp"

#include "wire/process_state.hpp"

namespace dockbridge::wire {

using nlohmann::json;

json to_json(const WriteOrder& order) {
  json flat = json::array();
  for (const OrderMark& mark : order) {
    flat.push_back(mark.out);
    flat.push_back(mark.err);
  }
  return flat;
}

Result<WriteOrder> write_order_from_json(const json& value) {
  const Error malformed{ErrorCode::protocol_violation, "The agent sent a malformed output order"};
  if (!value.is_array() || value.size() % 2 != 0 || value.size() > 2 * k_max_order_marks) {
    return fail(malformed);
  }
  WriteOrder order;
  OrderMark last;
  for (std::size_t i = 0; i < value.size(); i += 2) {
    if (!value[i].is_number_unsigned() || !value[i + 1].is_number_unsigned()) {
      return fail(malformed);
    }
    const OrderMark mark{value[i].get<std::uint64_t>(), value[i + 1].get<std::uint64_t>()};
    if (mark.out < last.out || mark.err < last.err || mark.out > k_max_stream_bytes || mark.err > k_max_stream_bytes) {
      return fail(malformed);
    }
    order.push_back(mark);
    last = mark;
  }
  return order;
}

}  // namespace dockbridge::wire
