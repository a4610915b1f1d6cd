#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "wire/codec.hpp"
#include "wire/names.hpp"

namespace dockbridge::wire {

// A code session is a process that runs the driver of an interpreter. The driver executes pieces of code, called cells,
// which the host sends over the side channel. docs/agent-protocol.md specifies the exchange.

enum class CodeKind : std::uint8_t { python, shell };
template <>
inline constexpr std::array<std::string_view, 2> k_names<CodeKind> = {"python", "shell"};

/// Longest name of a session.
inline constexpr std::size_t k_max_session_name = 64;
/// Most warm interpreters.
inline constexpr std::uint8_t k_max_warm_interpreters = 5;

/// Part of a start that makes the process a code session. Its command is only a label for people.
struct CodeSession {
  CodeKind kind = CodeKind::python;
  std::string name{};           ///< unique among the owner's live sessions of this kind; empty: ends after one cell
  std::string interpreter{};    ///< path of an interpreter or of a venv; empty: python3 of the PATH
  milliseconds idle_limit{0};   ///< the session ends after this time without a request; 0: no limit
  bool may_use_ipython = true;  ///< use the shell of IPython if the image has it
  /// Warm interpreters to keep ready after this start, at most k_max_warm_interpreters.
  std::uint8_t warm_interpreters = 0;

  void visit(Codec& codec);
};

/// Part of the state of a process that is a code session.
struct CodeSessionLabel {
  CodeKind kind = CodeKind::python;
  std::string name{};    ///< empty: ends after one cell
  bool is_warm = false;  ///< a warm interpreter was used

  void visit(Codec& codec);
};

/// Letters, digits, and "_", "-" and "." after the first character; at most k_max_session_name characters.
bool is_session_name(std::string_view name);

}  // namespace dockbridge::wire
