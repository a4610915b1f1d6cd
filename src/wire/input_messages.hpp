#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"
#include "wire/codec.hpp"
#include "wire/operation.hpp"
#include "wire/process_state.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::wire {

// Requests that send something to a process, and their answers (docs/agent-protocol.md).

/// Input that the host sends in one request. The agent accepts 32 KiB; this leaves room for an idempotency key.
inline constexpr std::size_t k_input_piece_bytes = 31UL * 1024;
/// Length of the digests of an idempotency key and of its call.
inline constexpr std::size_t k_digest_length = 32;
/// Highest signal number of Linux.
inline constexpr int k_max_signal = 64;

/// Makes a request of a call with an idempotency key repeatable. The process takes each unit (a byte, the end of the
/// input, a key, a signal) once, however often it is sent.
struct Once {
  std::string key;       ///< digest of the owner and the key
  std::string call;      ///< digest of the call
  std::uint64_t at = 0;  ///< units of the call before those of this request
  Offsets seen{};        ///< output that the caller had seen when the call began

  void visit(Codec& codec);
};

struct InputRequest {
  static constexpr Operation k_operation = Operation::input;
  std::string process;
  bool then_end = false;  ///< closes stdin after the input
  bool as_paste = false;
  std::optional<Once> once{};
  std::string_view input{};  ///< body

  void visit(Codec& codec);
};

struct KeysRequest {
  static constexpr Operation k_operation = Operation::keys;
  std::string process;
  std::vector<std::string> keys;  ///< names as in wire/terminal.hpp
  std::optional<Once> once{};

  void visit(Codec& codec);
};

/// Bytes for the side channel of a process.
struct SideRequest {
  static constexpr Operation k_operation = Operation::side;
  std::string process;
  std::optional<Once> once{};
  std::string_view bytes{};  ///< body

  void visit(Codec& codec);
};

struct SignalRequest {
  static constexpr Operation k_operation = Operation::signal;
  std::string process;
  int number = 0;
  std::optional<Once> once{};

  void visit(Codec& codec);
};

/// Asks for the number of units that a process has taken under a key.
struct TakenRequest {
  static constexpr Operation k_operation = Operation::taken;
  std::string process;
  Once once;

  void visit(Codec& codec);
};

/// Answer to `input`, `keys`, `side` and `taken`, and to `signal` with a key.
struct InputAnswer {
  /// Input that a process has taken under an idempotency key.
  struct Keyed {
    bool is_repeated = false;  ///< the units were taken before
    std::uint64_t units = 0;   ///< taken under this key
    Offsets seen{};            ///< of the first request with this key

    void visit(Codec& codec);
  };
  std::uint64_t accepted = 0;  ///< bytes, keys or signals
  std::optional<Keyed> keyed{};

  void visit(Codec& codec);
  /// The answer to a request that sent at most `max_accepted`.
  static InputAnswer from_json(const Field& head, std::uint64_t max_accepted, bool has_key);
};

struct ResizeRequest {
  static constexpr Operation k_operation = Operation::resize;
  std::string process;
  TerminalSize size;

  void visit(Codec& codec);
};

struct EndRequest {
  static constexpr Operation k_operation = Operation::end;
  std::string process;
  Cause cause = Cause::terminated;
  milliseconds grace{0};

  /// A reader takes any cause but `cancelled` for `terminated`.
  void visit(Codec& codec);
};

}  // namespace dockbridge::wire
