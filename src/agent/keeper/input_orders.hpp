#pragma once

#include <string_view>
#include <vector>

#include "agent/control/packets.hpp"
#include "agent/control/taken_inputs.hpp"
#include "agent/keeper/command_input.hpp"
#include "agent/keeper/side_channel.hpp"

namespace dockbridge::agent {

/// Executes orders that give the command something (input, keys, a signal, bytes on its side channel) and sends the
/// reply `accepted`. An order with an idempotency key is executed once.
class InputOrders {
 public:
  InputOrders(CommandInput& input, SideChannel& side) : m_input(input), m_side(side) {}

  /// The order `input`, `keys` or `side`.
  void execute(int socket, const ControlPacket& packet, Clock::time_point now);
  /// The order `once`. False for a peer that violates the protocol. A command that has ended receives nothing.
  bool execute_once(int socket, const ControlPacket& packet, bool is_running, Clock::time_point now);
  [[nodiscard]] const std::vector<TakenInput>& taken() const { return m_taken.all(); }

 private:
  Accepted execute(Order order, std::uint32_t value, std::string_view payload, Clock::time_point now);

  CommandInput& m_input;
  SideChannel& m_side;
  TakenInputs m_taken;
};

}  // namespace dockbridge::agent
