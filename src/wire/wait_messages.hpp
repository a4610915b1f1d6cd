#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/clock.hpp"
#include "wire/code_session.hpp"
#include "wire/codec.hpp"
#include "wire/operation.hpp"
#include "wire/process_state.hpp"
#include "wire/terminal.hpp"
#include "wire/write_order.hpp"

namespace dockbridge::wire {

// Requests that start a process or wait for one, and their answer (docs/agent-protocol.md).

/// Processes that one request may wait for.
inline constexpr std::size_t k_max_wait_processes = 32;
inline constexpr int k_max_nice = 19;

/// Reason why a wait is over.
enum class WaitOutcome : std::uint8_t {
  ended,    ///< the command ended
  grew,     ///< there is more output than `known`
  pattern,  ///< a line of output matches
  port,     ///< something listens on the port
  idle,     ///< no output and no input for the given time
  input,    ///< the process waits for input
  side,     ///< there is more on the side channel than `known_side`
  nothing,  ///< the timeout passed
};
template <>
inline constexpr std::array<std::string_view, 8> k_names<WaitOutcome> = {"ended", "grew",  "pattern", "port",
                                                                         "idle",  "input", "side",    "nothing"};

/// Events that end a wait, besides the end of the process and the timeout.
struct WaitCondition {
  std::optional<Offsets> known{};              ///< more output than this
  std::optional<std::uint64_t> known_side{};   ///< more on the side channel than so many bytes
  std::optional<std::string> pattern{};        ///< a line of output that matches, in RE2 syntax
  Offsets search_from{};                       ///< start of the lines that are matched against the pattern
  std::optional<std::uint16_t> port{};         ///< something listens on it in the container
  std::optional<milliseconds> idle{};          ///< neither output nor input for this time
  std::optional<milliseconds> longest_idle{};  ///< with `idle`: do not count time without a CPU, up to this limit
  bool input = false;                          ///< the process waits for input
  /// The process has read its input and waits for more, or, if that cannot be seen, has printed something and paused.
  bool answer = false;
  bool closed = false;  ///< wait for the end of everything that the command started, too

  void visit(Codec& codec);
};

/// Part of each request that waits.
struct WaitTerms {
  milliseconds timeout{0};
  std::uint64_t carry = 0;  ///< output up to this size is part of the answer, but at most k_max_read_bytes
  WaitCondition until{};

  void visit(Codec& codec);
};

/// A command to run as a new process.
struct Command {
  std::string id;  ///< of the process, created by the host
  std::string command;
  std::string cwd;
  std::vector<std::pair<std::string, std::string>> environment;
  std::optional<std::string> input;  ///< the whole of stdin; nullopt: stdin stays open
  milliseconds max_runtime{0};       ///< 0 means no limit
  std::uint64_t output_limit = 0;    ///< bytes after which the process is ended; 0 means no limit
  int nice = 0;
  std::optional<TerminalSize> terminal;  ///< nullopt: pipes
  bool has_side_channel = false;         ///< on descriptor 3; not together with a terminal
  std::optional<CodeSession> session{};  ///< the agent chooses the program, and gives it a side channel
  std::optional<std::string> user;       ///< nullopt: the user of the container
  std::string owner;
  std::string rationale;
  /// Digest of a call with an idempotency key; empty if it has none. The call follows a process that has this key.
  std::string call{};

  void visit(Codec& codec);
};

/// The body is command, environment and input.
struct StartRequest {
  static constexpr Operation k_operation = Operation::start;
  Command command;
  std::uint64_t above = 0;  ///< highest known number of the owner's processes; 0: none is known
  WaitTerms wait;

  void visit(Codec& codec);
};

/// Names one process by its id, or by its owner and number, or several processes by their ids.
struct WaitRequest {
  static constexpr Operation k_operation = Operation::wait;
  std::string process;                 ///< empty if it is named in another way
  std::optional<std::string> owner{};  ///< with `process`, another owner's process is reported as unknown
  std::optional<std::uint64_t> number{};
  std::vector<std::string> processes{};  ///< empty if one process is meant
  WaitTerms wait{};

  void visit(Codec& codec);
};

/// A process that listens on a TCP port of the container.
struct Listener {
  std::int64_t pid = 0;  ///< 0: the agent cannot determine it
  std::string command;
  bool is_own = false;       ///< it belongs to the process that the wait is about
  std::string process;       ///< the id of the owner's process that it belongs to; empty if none
  std::uint64_t number = 0;  ///< of that process; 0: none

  void visit(Codec& codec);
};

/// Answer to `start` and `wait`: the state of a process, and its whole output if that is short. The body is `out` and
/// `err`.
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

  void visit(Codec& codec);
};

}  // namespace dockbridge::wire
