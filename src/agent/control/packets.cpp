#include "agent/control/packets.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace dockbridge::agent {

static_assert(std::endian::native == std::endian::little, "control packets are sent as they are in memory");

namespace {

/// Any process in the container can listen at a keeper's socket name. A peer that sends a number out of range is not a
/// keeper.
bool is_sound(const StatePacket& state) {
  constexpr auto k_max_time = static_cast<std::uint64_t>(wire::k_max_time_ms);
  const auto is_time = [](std::int64_t ms) { return ms >= 0 && ms <= wire::k_max_time_ms; };
  return state.phase <= static_cast<std::uint8_t>(wire::Phase::closed) &&
         state.end <= static_cast<std::uint8_t>(wire::EndKind::unknown) && state.end_code >= 0 &&
         state.end_code <= wire::k_max_end_code && state.pid >= 0 && state.pid <= wire::k_max_pid &&
         state.out_total <= wire::k_max_stream_bytes && state.err_total <= wire::k_max_stream_bytes &&
         state.side_total <= wire::k_max_stream_bytes && state.idle_ms <= k_max_time &&
         state.starved_ms <= k_max_time && state.children <= wire::k_max_pid && is_time(state.ended_at_ms) &&
         is_time(state.ended_uptime_ms) && wire::is_plausible(state.used);
}

}  // namespace

std::optional<StatePacket> state_in(const ControlPacket& packet) {
  StatePacket state;
  if (packet.payload.size() < k_min_state_bytes - sizeof state.header) {
    return std::nullopt;
  }
  state.header = packet.header;
  std::copy_n(packet.payload.data(), std::min(packet.payload.size(), sizeof state - sizeof state.header),
              reinterpret_cast<char*>(&state) + sizeof state.header);
  return is_sound(state) ? std::optional(state) : std::nullopt;
}

std::optional<OnceAnswer> once_answer_in(const ControlPacket& packet) {
  OnceAnswer answer;
  if (packet.payload.size() < sizeof answer) {
    return std::nullopt;
  }
  std::memcpy(&answer, packet.payload.data(), sizeof answer);
  const bool is_sound = answer.before <= static_cast<std::uint8_t>(Before::another_call) &&
                        std::max({answer.units, answer.seen_out, answer.seen_err}) <= wire::k_max_stream_bytes;
  return is_sound ? std::optional(answer) : std::nullopt;
}

bool send_control(int socket, std::uint8_t type, std::uint32_t value, std::string_view payload) {
  ControlHeader header{k_control_version, type, 0, value};
  std::array<iovec, 2> parts = {iovec{&header, sizeof header},
                                iovec{const_cast<char*>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool send_state(int socket, const StatePacket& state) {
  return ::send(socket, &state, sizeof state, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

Received receive_control(int socket, ControlPacket& packet) {
  // Not on the stack, because a keeper keeps every page of its stack that was used once. Every role has one thread.
  static std::array<char, sizeof(ControlHeader) + k_max_control_payload> buffer;
  ssize_t got = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && errno == ECONNRESET) {
    // Reported once, before the packets that the peer sent earlier.
    got = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  }
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR ? Received::nothing : Received::hangup;
  }
  if (got < static_cast<ssize_t>(sizeof(ControlHeader))) {
    return Received::hangup;
  }
  std::memcpy(&packet.header, buffer.data(), sizeof(ControlHeader));
  packet.payload.assign(buffer.data() + sizeof(ControlHeader), static_cast<std::size_t>(got) - sizeof(ControlHeader));
  return Received::packet;
}

}  // namespace dockbridge::agent
