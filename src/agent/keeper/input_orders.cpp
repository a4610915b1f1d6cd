#include "agent/keeper/input_orders.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "agent/process_tree.hpp"

namespace dockbridge::agent {

namespace {

void send_accepted(int socket, std::size_t count, std::string_view payload = {}) {
  send_control(socket, static_cast<std::uint8_t>(Answer::accepted), static_cast<std::uint32_t>(count), payload);
}

/// Number of bytes, keys or signals in an order; nullopt if it cannot have an idempotency key.
std::optional<std::size_t> count_units(Order order, std::string_view payload) {
  switch (order) {
    case Order::none:
      return 0;
    case Order::input:
    case Order::side:
      return payload.size();
    case Order::keys:
      return count_keys(payload);
    case Order::signal:
      return 1;
    default:
      return std::nullopt;
  }
}

}  // namespace

Accepted InputOrders::execute(Order order, std::uint32_t value, std::string_view payload, Clock::time_point now) {
  if (order == Order::input) {
    return m_input.write(payload, value, now);
  }
  if (order == Order::keys) {
    return {m_input.press(payload, now), false};
  }
  if (order == Order::side) {
    return {m_side.write(payload, now), false};
  }
  signal_descendants(static_cast<int>(value));
  return {1, false};
}

void InputOrders::execute(int socket, const ControlPacket& packet, Clock::time_point now) {
  send_accepted(socket,
                execute(static_cast<Order>(packet.header.type), packet.header.value, packet.payload, now).count);
}

bool InputOrders::execute_once(int socket, const ControlPacket& packet, bool is_running, Clock::time_point now) {
  OnceHeader header;
  if (packet.payload.size() < sizeof header) {
    return false;
  }
  std::memcpy(&header, packet.payload.data(), sizeof header);
  const auto payload = std::string_view(packet.payload).substr(sizeof header);
  const auto order = static_cast<Order>(header.order);
  const auto sent = count_units(order, payload);
  if (!sent) {
    return false;
  }
  const bool then_end = order == Order::input && (packet.header.value & k_then_end) != 0;
  const auto found = m_taken.find(header, *sent + (then_end ? 1 : 0));
  Accepted accepted{std::min<std::size_t>(found.units, *sent), false};
  if (found.before == Before::no && order != Order::none && is_running) {
    accepted = execute(order, packet.header.value, payload, now);
    m_taken.add(header, accepted.count + (accepted.then_end ? 1 : 0));
  }
  const OnceAnswer answer = m_taken.answer(header, found.before);
  send_accepted(socket, accepted.count, {reinterpret_cast<const char*>(&answer), sizeof answer});
  return true;
}

}  // namespace dockbridge::agent
