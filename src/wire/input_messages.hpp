#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "util/clock.hpp"
#include "wire/fields.hpp"
#include "wire/operation.hpp"
#include "wire/process_state.hpp"
#include "wire/terminal.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::wire {

// Requests that send something to a process, and their answers (docs/agent-protocol.md).

/// Input that the host sends in one request. The agent accepts 32 KiB; this leaves room for an idempotency key.
inline constexpr std::size_t k_input_piece_bytes = 31UL * 1024;
/// Length of the digests of an idempotency key and of its call.
inline constexpr std::size_t k_digest_length = 32;
/// Highest signal number of Linux.
inline constexpr int k_max_signal = 64;

/// A part of what is sent to a process by a call with an idempotency key. The process takes each unit (a byte, the end
/// of the input, a key, a signal) once, however often it is sent.
struct Once {
  std::string key;       ///< digest of the owner and the key
  std::string call;      ///< digest of the call
  std::uint64_t at = 0;  ///< number of the units before these
  Offsets seen{};        ///< amount of output that the caller knew of when it began

  static Once from_json(const Field& field);
};
nlohmann::json to_json(const Once& once);

/// The body is the input.
struct InputRequest {
  static constexpr Operation k_operation = Operation::input;
  std::string process;
  bool then_end = false;  ///< closes stdin after the input
  bool as_paste = false;
  std::optional<Once> once{};

  static InputRequest from_json(const Field& head);
};
nlohmann::json to_json(const InputRequest& request);

struct KeysRequest {
  static constexpr Operation k_operation = Operation::keys;
  std::string process;
  std::vector<std::string> keys;  ///< names as in wire/terminal.hpp
  std::optional<Once> once{};

  static KeysRequest from_json(const Field& head);
};
nlohmann::json to_json(const KeysRequest& request);

struct SignalRequest {
  static constexpr Operation k_operation = Operation::signal;
  std::string process;
  int number = 0;
  std::optional<Once> once{};

  static SignalRequest from_json(const Field& head);
};
nlohmann::json to_json(const SignalRequest& request);

/// Asks what a process has taken under a key, and sends nothing to it.
struct TakenRequest {
  static constexpr Operation k_operation = Operation::taken;
  std::string process;
  Once once;

  static TakenRequest from_json(const Field& head);
};
nlohmann::json to_json(const TakenRequest& request);

/// Answer to `input`, `keys` and `taken`, and to `signal` with a key.
struct InputAnswer {
  /// What a process knows of an idempotency key.
  struct Keyed {
    bool is_repeated = false;  ///< the units were taken before
    std::uint64_t units = 0;   ///< taken under this key
    Offsets seen{};            ///< of the first request with this key
  };
  std::uint64_t accepted = 0;  ///< bytes, keys or signals
  std::optional<Keyed> keyed{};

  /// `max_accepted` is what the request sent.
  static InputAnswer from_json(const Field& head, std::uint64_t max_accepted, bool has_key);
};
nlohmann::json to_json(const InputAnswer& answer);

struct ResizeRequest {
  static constexpr Operation k_operation = Operation::resize;
  std::string process;
  TerminalSize size;

  static ResizeRequest from_json(const Field& head);
};
nlohmann::json to_json(const ResizeRequest& request);

struct EndRequest {
  static constexpr Operation k_operation = Operation::end;
  std::string process;
  Cause cause = Cause::terminated;
  milliseconds grace{0};

  /// Any cause but `cancelled` is `terminated`.
  static EndRequest from_json(const Field& head);
};
nlohmann::json to_json(const EndRequest& request);

}  // namespace dockbridge::wire
