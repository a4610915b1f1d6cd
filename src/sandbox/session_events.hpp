#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"
#include "wire/names.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::sandbox {

// Events that the driver of a code session reports on the side channel, one JSON object per line. The container is not
// trusted, so every field is checked.

/// Longest line with an answer to a request, such as the whole history, and with any other event. Longer ones are
/// skipped.
inline constexpr std::size_t k_max_answer_bytes = 16UL * 1024 * 1024;
inline constexpr std::size_t k_max_event_bytes = 4UL * 1024 * 1024;

enum class SessionEventKind : std::uint8_t {
  ready,        ///< the driver has started
  begin,        ///< a cell begins
  display,      ///< a running cell shows something
  end,          ///< a cell has ended
  stale,        ///< a cell was not run, because another one has its number
  idle,         ///< the driver ends, because it got no request within the idle limit
  history,      ///< answer to a request
  variables,    ///< answer to a request
  pong,         ///< answer to a request
  bad_request,  ///< a request could not be understood, and nothing was run
  too_old,      ///< the interpreter is too old for the driver, which ends
};

enum class CellStatus : std::uint8_t { ok, error, interrupted };

}  // namespace dockbridge::sandbox

namespace dockbridge::wire {

template <>
inline constexpr std::array<std::string_view, 11> k_names<sandbox::SessionEventKind> = {
    "ready", "begin", "display", "end", "stale", "idle", "history", "variables", "pong", "bad_request", "too_old"};
template <>
inline constexpr std::array<std::string_view, 3> k_names<sandbox::CellStatus> = {"ok", "error", "interrupted"};

}  // namespace dockbridge::wire

namespace dockbridge::sandbox {

/// File in the container to which the driver has written a representation that is not text, or too long.
struct SavedFile {
  std::string path;     ///< empty if it could not be written
  std::string problem;  ///< the reason for that
  std::uint64_t bytes = 0;
  std::uint32_t width = 0;  ///< of an image; 0: unknown
  std::uint32_t height = 0;
};

/// One representation of a value: a text or a file.
struct MimePart {
  std::string type;  ///< such as "text/plain"
  std::string text{};
  std::uint64_t whole_length = 0;  ///< characters of the whole text if `text` is only its start; 0: it is whole
  std::optional<SavedFile> file{};
};
/// All representations of one value.
using MimeBundle = std::vector<MimePart>;

/// The part with this type; nullptr if there is none.
const MimePart* find_part(const MimeBundle& bundle, std::string_view type);

/// An exception that ended a cell.
struct CellError {
  std::string name;
  std::string value;
  std::string traceback;           ///< text that ends with a newline
  std::optional<int> exit_status;  ///< of SystemExit
};

/// One variable of a Python session.
struct SessionVariable {
  std::string name;
  std::string type{};
  std::vector<std::uint64_t> shape{};
  std::optional<std::uint64_t> length{};
  std::optional<std::uint64_t> bytes{};
  std::string text{};  ///< start of its repr()
};

/// Source of one cell.
struct CellSource {
  std::uint64_t cell = 0;
  std::string code;
};

/// An event. Which fields are set depends on its kind.
struct SessionEvent {
  std::uint64_t cell = 0;            ///< of begin, display, end, stale
  double seconds = 0;                ///< of end: run time
  std::uint64_t request = 0;         ///< of history, variables, pong: the number in the request
  std::uint64_t left_out = 0;        ///< of history: dropped cells; of variables: variables that are not listed
  wire::Offsets output_before{};     ///< output that was written before the event
  std::string key{};                 ///< of begin, stale
  std::string first_line{};          ///< of begin: the start of the code; may be empty
  MimeBundle bundle{};               ///< of display; of end: the value of the cell
  std::optional<CellError> error{};  ///< of end
  std::string version{};             ///< of ready, too_old: of the interpreter
  std::string executable{};          ///< of ready
  std::string prefix{};              ///< of ready: directory of the installation or venv
  std::string message{};             ///< of bad_request
  std::vector<SessionVariable> variables{};
  std::vector<CellSource> history{};
  std::optional<int> exit_status{};  ///< of end: exit status of a shell command
  SessionEventKind kind = SessionEventKind::pong;
  CellStatus status{};          ///< of end
  bool is_state_kept = false;   ///< of end
  bool is_limited = false;      ///< of begin: the cell is interrupted after its time limit
  bool has_ipython = false;     ///< of ready
  bool is_interrupted = false;  ///< of variables: an interrupt ended the listing
};

/// Reads a line. nullopt for an event that is unknown or malformed.
std::optional<SessionEvent> parse_session_event(std::string_view line);

}  // namespace dockbridge::sandbox
