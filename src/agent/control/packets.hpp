#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/input_messages.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

// The packets on a keeper's control socket (SOCK_SEQPACKET), specified in docs/agent-protocol.md.
// They are fixed little-endian structures. A keeper and its sessions may have different versions.

/// New in 2: watch_input, keys, screen, resize. In 3: trim. In 4: once. In 5: k_watch_answer, k_as_paste. In 6: side.
/// In 7: the cause `memory` of `end`.
inline constexpr std::uint8_t k_control_version = 7;
inline constexpr std::size_t k_max_control_payload = 32 * 1024;
/// Input that a keeper queues for its process.
inline constexpr std::size_t k_max_pending_input = 1024 * 1024;

/// Session to keeper.
enum class Order : std::uint8_t {
  none = 0,          ///< never sent by itself; see OnceHeader
  query = 1,         ///< value: 0 or k_with_starvation; reply: `state`
  watch_growth = 2,  ///< reply: `state`, once, when there is more output than in the last state
  input = 3,         ///< payload: bytes for stdin; value: k_then_end, k_as_paste; reply: `accepted`
  signal = 4,        ///< value: signal for every process of the tree
  end = 5,           ///< SIGTERM to the tree, SIGKILL after value milliseconds; payload: one byte of wire::Cause
  start = 6,         ///< command for a keeper without one, from the session that started it; see assignment.hpp
  attach = 7,        ///< first order on a new connection; payload: id of the process
  watch_input = 8,   ///< value: k_watch_input, k_watch_answer, or 0 to stop; reply: `state`, once for each bit
  keys = 9,          ///< payload: names of keys for the terminal, one space between; reply: `accepted`
  screen = 10,       ///< store the terminal's screen in its file; reply: `screen`
  resize = 11,       ///< value: columns in the lower half, rows in the upper half
  trim = 12,         ///< limit stored output to value bytes from now on
  once = 13,         ///< payload: a OnceHeader and the payload of its order; reply: `accepted` with a OnceAnswer
  side = 14,         ///< payload: bytes for the side channel; reply: `accepted`
};

/// Keeper to session.
enum class Answer : std::uint8_t {
  state = 1,         ///< a StatePacket; also sent at each change of the phase; value: 0 or k_keeper_is_free
  accepted = 2,      ///< value: number of accepted bytes, keys or signals
  start_failed = 3,  ///< payload: the reason; the keeper is free again
  screen = 4,        ///< the screen is stored, or there is no terminal
  child_ended = 5,   ///< a warm child has ended or could not be started; only to the session that started the keeper
};

/// To the session that started this keeper: the process is closed, and the keeper can get another command.
inline constexpr std::uint32_t k_keeper_is_free = 1;

/// With a query: also measure how long the threads of the tree have waited for a CPU.
inline constexpr std::uint32_t k_with_starvation = 1;

/// With input: close stdin after it.
inline constexpr std::uint32_t k_then_end = 1;
/// With input: mark it as a paste if the program on the terminal has asked for that.
inline constexpr std::uint32_t k_as_paste = 2;

/// With watch_input: the process waits for input.
inline constexpr std::uint32_t k_watch_input = 1;
/// With watch_input: the process has answered its latest input, see StatePacket::answered.
inline constexpr std::uint32_t k_watch_answer = 2;

struct ControlHeader {
  std::uint8_t version = k_control_version;
  std::uint8_t type = 0;
  std::uint16_t reserved = 0;
  std::uint32_t value = 0;
};
static_assert(sizeof(ControlHeader) == 8);

struct StatePacket {
  ControlHeader header{};
  std::uint8_t phase = 0;
  std::uint8_t end = 0;
  std::uint8_t cause = 0;
  std::uint8_t stdin_open = 0;
  std::int32_t end_code = 0;
  std::int64_t pid = 0;
  std::uint64_t out_total = 0;
  std::uint64_t err_total = 0;
  std::uint64_t idle_ms = 0;
  std::int64_t ended_at_ms = 0;
  // An older keeper does not send the fields from here on. They read as 0.
  std::uint8_t waits_for_input = 0;
  std::uint8_t paused = 0;
  std::uint8_t terminal = 0;
  /// 1: it has read all input and waits for more, and does not change the screen before that; or, if it cannot be
  /// examined, it has printed something and paused. 0 from a keeper before version 5.
  std::uint8_t answered = 0;
  std::uint32_t children = 0;
  wire::Usage used{};
  std::int64_t ended_uptime_ms = 0;
  std::uint64_t starved_ms = 0;
  std::uint64_t side_total = 0;
};
static_assert(sizeof(StatePacket) == 120);
inline constexpr std::size_t k_min_state_bytes = 56;

using wire::k_digest_length;

/// Header of an order that is executed once per idempotency key, even if it is repeated. Input under a key is counted
/// in units in their order: bytes, the end of input, keys, signals.
struct OnceHeader {
  std::array<char, k_digest_length> key{};
  std::array<char, k_digest_length> call{};
  std::uint64_t at = 0;        ///< units before those of this order
  std::uint64_t seen_out = 0;  ///< output that the sender knew when it began
  std::uint64_t seen_err = 0;
  std::uint8_t order = 0;  ///< input, keys, signal or side; none: only reply
  std::array<std::uint8_t, 7> reserved{};
};
static_assert(sizeof(OnceHeader) == 96);

/// Whether units were taken before under this key.
enum class Before : std::uint8_t {
  no,
  yes,
  another_call,  ///< the key belongs to another call
};

struct OnceAnswer {
  std::uint64_t units = 0;     ///< taken under this key until now
  std::uint64_t seen_out = 0;  ///< from the first order under this key
  std::uint64_t seen_err = 0;
  std::uint8_t before = 0;
  std::array<std::uint8_t, 7> reserved{};
};
static_assert(sizeof(OnceAnswer) == 32);

struct ControlPacket {
  ControlHeader header;
  std::string payload;
};

enum class Received : std::uint8_t { packet, nothing, hangup };

/// Parses a packet of type `state`; fields that an older keeper does not send are 0. nullopt if the packet is too short
/// or a number is out of range.
std::optional<StatePacket> state_in(const ControlPacket& packet);
/// Parses the reply `accepted` to an order with an idempotency key. nullopt if it is the reply to another order or a
/// number is out of range.
std::optional<OnceAnswer> once_answer_in(const ControlPacket& packet);

/// Non-blocking. A send that would block returns false: the peer does not read.
bool send_control(int socket, std::uint8_t type, std::uint32_t value, std::string_view payload = {});
bool send_state(int socket, const StatePacket& state);
Received receive_control(int socket, ControlPacket& packet);

}  // namespace dockbridge::agent
