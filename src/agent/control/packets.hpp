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
// They are fixed little-endian structures: a keeper of one version talks to sessions of others.

/// 2: watch_input, keys, screen, resize. 3: trim. 4: once. 5: watching for an answer, paste.
inline constexpr std::uint8_t k_control_version = 5;
inline constexpr std::size_t k_max_control_payload = 32 * 1024;
/// What a keeper holds of input its process has not read yet.
inline constexpr std::size_t k_max_pending_input = 1024 * 1024;

/// What the names of keepers' sockets in the state directory begin with.
inline constexpr std::string_view k_keeper_prefix = "keeper_";

/// Session to keeper.
enum class Order : std::uint8_t {
  none = 0,          ///< never sent by itself; see OnceHeader
  query = 1,         ///< answer with the state now; value: 0 or k_heed_starvation
  watch_growth = 2,  ///< answer with the state, once, when there is more output than the last state told
  input = 3,         ///< payload goes to stdin; value: k_then_end, k_as_paste; answered by `accepted`
  signal = 4,        ///< value: the signal, for every process of the tree
  end = 5,           ///< TERM to the tree, KILL after value milliseconds; payload: one byte of wire::Cause
  start = 6,         ///< to a keeper without a process, by the session that started it: here is one, see assignment.hpp
  attach = 7,        ///< the first on a link that was connected; payload: the id of the process that is meant
  watch_input = 8,   ///< answer with the state, once for each bit of value: k_watch_input, k_watch_answer; 0: do not
  keys = 9,          ///< payload: names of keys, one space between; goes to the terminal; answered by `accepted`
  screen = 10,       ///< write what is on the terminal's screen to its file; answered by `screen`
  resize = 11,       ///< value: columns in the lower, rows in the upper half
  trim = 12,         ///< from now on store no more than value bytes of output
  once = 13,         ///< payload: a OnceHeader, and what the order in it has; answered by `accepted` with a OnceAnswer
};

/// Keeper to session.
enum class Answer : std::uint8_t {
  state = 1,         ///< a StatePacket; also sent unasked whenever the phase changes; value: 0 or k_keeper_is_free
  accepted = 2,      ///< value: how many bytes of input were taken, or keys, or signals
  start_failed = 3,  ///< payload: the reason; the keeper is free again
  screen = 4,        ///< the screen's file is written, or there is no terminal
};

/// To the session that started this keeper: nothing is left of the process, it can have another.
inline constexpr std::uint32_t k_keeper_is_free = 1;

/// With a query: note how long the threads of the tree have waited for a CPU, too.
inline constexpr std::uint32_t k_heed_starvation = 1;

/// With input: close stdin behind it.
inline constexpr std::uint32_t k_then_end = 1;
/// With input: mark it as a paste if the program on the terminal has asked for that.
inline constexpr std::uint32_t k_as_paste = 2;

/// With watch_input: when the process waits for input.
inline constexpr std::uint32_t k_watch_input = 1;
/// With watch_input: when the process has answered its latest input, see StatePacket::answered.
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
  // Beyond here, a keeper of an older version has sent nothing, which reads as zeros.
  std::uint8_t waits_for_input = 0;
  std::uint8_t paused = 0;
  std::uint8_t terminal = 0;
  /// 1: it has read all input and waits for more, and will change nothing on a terminal's screen before that comes; or
  /// it has printed something and paused, if it cannot be seen whether it waits. 0 from a keeper before version 5.
  std::uint8_t answered = 0;
  std::uint32_t children = 0;
  wire::Usage used{};
  std::int64_t ended_uptime_ms = 0;
  std::uint64_t starved_ms = 0;
};
static_assert(sizeof(StatePacket) == 112);
inline constexpr std::size_t k_least_state_bytes = 56;

using wire::k_digest_length;

/// An order that is obeyed once for each key, however often it comes. What is given under a key is counted in units,
/// one after the other: bytes of input, its end, keys, signals.
struct OnceHeader {
  std::array<char, k_digest_length> key{};
  std::array<char, k_digest_length> call{};
  std::uint64_t at = 0;        ///< the units that go before this order's
  std::uint64_t seen_out = 0;  ///< how much output the sender knew of when it began
  std::uint64_t seen_err = 0;
  std::uint8_t order = 0;  ///< input, keys or signal; none: just tell
  std::array<std::uint8_t, 7> reserved{};
};
static_assert(sizeof(OnceHeader) == 96);

/// Whether units were taken before under this key.
enum class Before : std::uint8_t {
  no,
  yes,
  another_call,  ///< the key was used for something else
};

struct OnceAnswer {
  std::uint64_t units = 0;     ///< taken under this key until now, 0 if none
  std::uint64_t seen_out = 0;  ///< of the order that was the first
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

/// Both are non-blocking. A send that would block reports false: the peer does not read.
bool send_control(int socket, std::uint8_t type, std::uint32_t value, std::string_view payload = {});
bool send_state(int socket, const StatePacket& state);
Received receive_control(int socket, ControlPacket& packet);

}  // namespace dockbridge::agent
