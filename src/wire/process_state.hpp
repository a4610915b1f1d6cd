#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "wire/fields.hpp"

namespace dockbridge::wire {

// Limits of numbers from a state directory or an agent. Neither is trusted.

/// Largest number of bytes of a stream. Sums of several do not overflow.
inline constexpr std::uint64_t k_max_stream_bytes = std::uint64_t{1} << 60U;
/// Largest time: the end of the year 9999 as Unix time. Also the longest duration, so that sums do not overflow.
inline constexpr std::int64_t k_max_time_ms = 253'402'300'799'999;
inline constexpr std::int64_t k_max_pid = INT32_MAX;
inline constexpr int k_max_end_code = 255;
/// Largest number of a process among its owner's.
inline constexpr std::uint64_t k_max_process_number = 999'999'999;
/// Longest text of a process: its command, working directory, owner, rationale or path.
inline constexpr std::size_t k_max_state_text = 16 * 1024;

/// How far a process has come.
enum class Phase : std::uint8_t {
  running,  ///< the command runs
  exited,   ///< the command ended; something it started still runs or holds its output open
  closed,   ///< everything ended; the record is final
  lost,     ///< its keeper is gone without a record: how it ended is unknown
};

enum class EndKind : std::uint8_t { none, exit, signal, unknown };

/// Why a process ended, if it did not by itself.
enum class Cause : std::uint8_t {
  none,
  timeout,     ///< its maximum run time was over
  cancelled,   ///< the call that started it was
  terminated,  ///< someone told it to
  output,      ///< it printed more than it may
  memory,      ///< the container ran out of memory, and the kernel killed it
  container,   ///< the container stopped; only the host can tell
};
/// A cause that a newer version knows is none to this one.
constexpr Cause cause_from(int number) {
  return number > 0 && number <= static_cast<int>(Cause::container) ? static_cast<Cause>(number) : Cause::none;
}

/// What a process and everything it started have used.
struct Usage {
  std::uint64_t cpu_ms = 0;
  std::uint64_t peak_memory_kib = 0;  ///< of the largest of them
  std::uint64_t read_bytes = 0;       ///< from disks
  std::uint64_t written_bytes = 0;

  static Usage from_json(const Field& field);
};

/// Whether something in a process's tree waits for input, as a fact from the kernel.
enum class WaitsForInput : std::uint8_t { no, yes, unknown };

/// What the spool holds of one stream: bytes [0, head_end) and [tail_start, total).
/// Between head_end and tail_start lies the gap, counted exactly.
struct StreamState {
  std::uint64_t total = 0;
  std::uint64_t head_end = 0;
  std::uint64_t tail_start = 0;

  static StreamState from_json(const Field& field);
};

/// Whether all numbers are within their ranges.
bool is_plausible(const Usage& usage);

/// Everything the host is told about a process.
struct ProcessState {
  std::string id;
  std::uint64_t number = 0;  ///< among its owner's, from 1 on; 0: it has none, an older agent started it
  Phase phase = Phase::running;
  EndKind end = EndKind::none;
  int end_code = 0;  ///< exit status or signal number
  Cause cause = Cause::none;
  StreamState out;
  StreamState err;
  std::uint64_t idle_ms = 0;  ///< since the last output or input
  bool stdin_open = false;
  WaitsForInput waits_for_input = WaitsForInput::no;
  bool paused = false;    ///< stopped by a signal
  bool terminal = false;  ///< it has one; what it prints is all in `out`
  std::int64_t pid = 0;
  std::int64_t started_at_ms = 0;  ///< wall clock, for people
  std::int64_t ended_at_ms = 0;
  /// From its start to its end, or until now, by a clock that does not jump. Nullopt if an older agent recorded it.
  std::optional<std::int64_t> ran_ms;
  std::string command;  ///< cut to a preview
  std::string cwd;
  std::string owner;
  std::string rationale;
  Usage used;
  std::uint64_t children = 0;  ///< live processes of its tree
  std::string path;            ///< of its record in the container; its spools lie beside it

  [[nodiscard]] bool running() const { return phase == Phase::running; }

  /// Checks types, enumerations and the order of the offsets: the sender is not trusted.
  static ProcessState from_json(const Field& field);
};

nlohmann::json to_json(const ProcessState& state);
nlohmann::json to_json(const StreamState& stream);
nlohmann::json to_json(const Usage& usage);
Result<Usage> usage_from_json(const nlohmann::json& value);
Result<ProcessState> process_state_from_json(const nlohmann::json& value);

std::string_view name_of(Phase phase);
std::string_view name_of(EndKind kind);
std::string_view name_of(Cause cause);
std::string_view name_of(WaitsForInput fact);

/// `proc_<digits>_<letters and digits>`, at most 64 characters: safe as a file name.
bool is_process_id(std::string_view id);
/// A field that must hold a process id.
const std::string& process_id_from(const Field& field);
/// The number in the short id of a process, such as `p3`; nullopt if the text is not one.
std::optional<std::uint64_t> process_number_in(std::string_view short_id);

}  // namespace dockbridge::wire
