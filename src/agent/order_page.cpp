#include "agent/order_page.hpp"

#include <algorithm>
#include <atomic>

#include "wire/process_state.hpp"

namespace dockbridge::agent {

namespace {

void store(std::uint64_t& field, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(field).store(value, std::memory_order_release);
}

}  // namespace

void OrderPage::note(std::uint64_t out, std::uint64_t err) {
  // Read once: another process may change it, and the slot must not depend on two values of it.
  const std::uint64_t count = std::atomic_ref<std::uint64_t>(m_count).load(std::memory_order_relaxed);
  if (count > 0) {
    if (wire::OrderMark& last = m_marks[slot(count - 1)]; last.out == out) {
      store(last.err, err);  // no stdout in between: the same run
      return;
    }
  }
  wire::OrderMark& next = m_marks[slot(count)];
  store(next.out, out);
  store(next.err, err);
  store(m_count, count + 1);
}

wire::WriteOrder OrderPage::marks() const {
  wire::WriteOrder order;
  wire::OrderMark last;
  const auto take = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) {
      const wire::OrderMark& mark = m_marks[slot(number)];
      if (mark.out >= last.out && mark.err >= last.err && mark.out <= wire::k_max_stream_bytes &&
          mark.err <= wire::k_max_stream_bytes) {
        order.push_back(mark);
        last = mark;
      }
    }
  };
  take(0, std::min<std::uint64_t>(m_count, k_first_marks));
  const std::uint64_t latest = m_count - std::min<std::uint64_t>(m_count, k_latest_marks - 1);
  take(std::max<std::uint64_t>(latest, k_first_marks), m_count);
  return order;
}

static_assert(sizeof(OrderPage) == 4032);

}  // namespace dockbridge::agent
