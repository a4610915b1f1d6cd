#include "wire/write_order.hpp"

#include <nlohmann/json.hpp>

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

WriteOrder write_order_from(const Field& field) {
  const auto numbers = field.elements(2 * k_max_order_marks);
  if (numbers.size() % 2 != 0) {
    field.fail_here();
  }
  WriteOrder order;
  OrderMark last;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const OrderMark mark{numbers[i].number(k_max_stream_bytes), numbers[i + 1].number(k_max_stream_bytes)};
    if (mark.out < last.out || mark.err < last.err) {
      numbers[i].fail_here();
    }
    order.push_back(mark);
    last = mark;
  }
  return order;
}

}  // namespace dockbridge::wire
