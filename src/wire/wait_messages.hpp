#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/clock.hpp"
#include "wire/fields.hpp"
#include "wire/operation.hpp"
#include "wire/process_state.hpp"
#include "wire/terminal.hpp"
#include "wire/write_order.hpp"

namespace dockbridge::wire {

// Requests that start a process or wait for one, and their answer (docs/agent-protocol.md).

/// Longest duration in a request. The host shortens longer ones.
inline constexpr milliseconds k_max_duration{UINT32_MAX};
/// Processes that one request may wait for.
inline constexpr std::size_t k_max_wait_processes = 32;
inline constexpr int k_max_nice = 19;

/// Bytes of stdout and of stderr.
using Offsets = std::pair<std::uint64_t, std::uint64_t>;
Offsets offsets_from(const Field& field, std::uint64_t max);

/// A duration in a request, at most `k_max_duration`.
nlohmann::json duration_to_json(milliseconds duration);
milliseconds duration_from(const Field& field);

/// Reason why a wait is over.
enum class WaitOutcome : std::uint8_t {
  ended,    ///< the command ended
  grew,     ///< there is more output than the waiter knew
  pattern,  ///< a line of output matches
  port,     ///< something listens on the port
  idle,     ///< no output and no input for so long
  input,    ///< the process waits for input
  nothing,  ///< the timeout passed
};
std::string_view name_of(WaitOutcome outcome);
std::optional<WaitOutcome> wait_outcome_named(std::string_view name);

/// Events that end a wait, besides the end of the process and the timeout.
struct WaitCondition {
  std::optional<Offsets> known{};              ///< more output than this
  std::optional<std::string> pattern{};        ///< a line of output that matches, in RE2 syntax
  Offsets search_from{};                       ///< start of the lines that are matched against the pattern
  std::optional<std::uint16_t> port{};         ///< something listens on it in the container
  std::optional<milliseconds> idle{};          ///< neither output nor input for so long
  std::optional<milliseconds> longest_idle{};  ///< with `idle`: time without a CPU to run on is not counted, up to this
  bool input = false;                          ///< the process waits for input
  /// The process has read its input and waits for more, or, if that cannot be seen, has printed something and paused.
  bool answer = false;
  bool closed = false;  ///< the end of the command is not enough: everything that it started must have ended

  static WaitCondition from_json(const Field& until);
};
nlohmann::json to_json(const WaitCondition& until);

/// Part of each request that waits.
struct WaitTerms {
  milliseconds timeout{0};
  std::uint64_t carry = 0;  ///< output up to this size is part of the answer, but at most k_max_read_bytes
  WaitCondition until{};

  static WaitTerms from_json(const Field& head);
};

/// A command to run as a new process.
struct Command {
  std::string id;  ///< of the process, created by the host
  std::string command;
  std::string cwd;
  std::vector<std::pair<std::string, std::string>> environment;
  std::optional<std::string> input;  ///< the whole of stdin; nullopt: stdin stays open
  milliseconds max_runtime{0};       ///< 0 means no limit
  std::uint64_t output_limit = 0;    ///< bytes after which it is ended; 0 means no limit
  int nice = 0;
  std::optional<TerminalSize> terminal;  ///< nullopt: pipes
  std::optional<std::string> user;       ///< nullopt: the user of the container
  std::string owner;
  std::string rationale;
  /// Digest of a call with an idempotency key; empty if it has none. A process that exists for this key is followed.
  std::string call{};
};

struct StartRequest {
  static constexpr Operation k_operation = Operation::start;
  Command command;
  std::uint64_t above = 0;  ///< highest known number of the owner's processes; 0: none is known
  WaitTerms wait;

  static StartRequest from_json(const Field& head, std::string_view body);
};
nlohmann::json to_json(const StartRequest& request);
std::string body_of(const StartRequest& request);

/// Names one process by its id, or by its owner and number, or several processes by their ids.
struct WaitRequest {
  static constexpr Operation k_operation = Operation::wait;
  std::string process;                 ///< empty if it is named in another way
  std::optional<std::string> owner{};  ///< with `process`, another owner's process is reported as unknown
  std::optional<std::uint64_t> number{};
  std::vector<std::string> processes{};  ///< empty if one process is meant
  WaitTerms wait{};

  static WaitRequest from_json(const Field& head);
};
nlohmann::json to_json(const WaitRequest& request);

/// A process that listens on a TCP port of the container.
struct Listener {
  std::int64_t pid = 0;  ///< 0: the agent cannot determine it
  std::string command;
  bool is_own = false;       ///< it belongs to the process that the wait is about
  std::string process;       ///< the id of the owner's process that it belongs to; empty if none
  std::uint64_t number = 0;  ///< of that process; 0: none

  static Listener from_json(const Field& field);
};
nlohmann::json to_json(const Listener& listener);

/// Answer to `start` and `wait`: a process as it is, and its whole output if that is short.
struct WaitAnswer {
  ProcessState state;
  WaitOutcome happened = WaitOutcome::nothing;
  std::string line{};                  ///< the one that matches the pattern
  std::optional<Offsets> searched{};   ///< with a pattern: position to continue the search from
  std::optional<Listener> listener{};  ///< on the port of the wait; nullopt if nothing listens
  bool whole = false;                  ///< `out` and `err` hold everything the process wrote so far
  std::string out{};
  std::string err{};
  WriteOrder order{};  ///< of both streams; may name bytes beyond their totals

  static WaitAnswer from_json(const Field& head, std::string_view body);
};
nlohmann::json to_json(const WaitAnswer& answer);
std::string body_of(const WaitAnswer& answer);

}  // namespace dockbridge::wire
