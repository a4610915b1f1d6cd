#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wire/code_session.hpp"
#include "wire/codec.hpp"

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

/// Progress of a process.
enum class Phase : std::uint8_t {
  running,  ///< the command runs
  exited,   ///< the command ended; something it started still runs or holds its output open
  closed,   ///< everything ended; the record is final
  lost,     ///< its keeper ended without a record, so the end of the command is unknown
};

template <>
inline constexpr std::array<std::string_view, 4> k_names<Phase> = {"running", "exited", "closed", "lost"};

enum class EndKind : std::uint8_t { none, exit, signal, unknown };
template <>
inline constexpr std::array<std::string_view, 4> k_names<EndKind> = {"none", "exit", "signal", "unknown"};

/// Reason for the end of a process that did not end by itself.
enum class Cause : std::uint8_t {
  none,
  timeout,     ///< it exceeded its maximum run time
  cancelled,   ///< the call that started it was cancelled
  terminated,  ///< a request ended it
  output,      ///< it exceeded its output limit
  memory,      ///< the container ran out of memory, and the kernel killed it
  container,   ///< the container stopped; only the host can detect this
};
template <>
inline constexpr std::array<std::string_view, 7> k_names<Cause> = {"none",   "timeout", "cancelled", "terminated",
                                                                   "output", "memory",  "container"};
/// The cause with this number; `none` for a number that only newer versions know.
constexpr Cause cause_from(int number) {
  return number > 0 && number <= static_cast<int>(Cause::container) ? static_cast<Cause>(number) : Cause::none;
}

/// Resources that a process and all its descendants have used. In JSON, an array of the four numbers.
struct Usage {
  std::uint64_t cpu_ms = 0;
  std::uint64_t peak_memory_kib = 0;  ///< of the largest of them
  std::uint64_t read_bytes = 0;       ///< from disks
  std::uint64_t written_bytes = 0;

  static Usage from_json(const Field& field);
};

/// Whether a process of the tree waits for input, according to the kernel.
enum class WaitsForInput : std::uint8_t { no, yes, unknown };
template <>
inline constexpr std::array<std::string_view, 3> k_names<WaitsForInput> = {"no", "yes", "unknown"};

/// Bytes of stdout and of stderr.
using Offsets = std::pair<std::uint64_t, std::uint64_t>;
/// Reads `[stdout, stderr]`.
struct OffsetsAtMost {
  std::uint64_t max;
  Offsets operator()(const Field& field) const;
};

/// Stored bytes of one stream: [0, head_end) and [tail_start, total). Between head_end and tail_start lies the gap,
/// counted exactly. In JSON, an array of the three numbers.
struct StreamState {
  std::uint64_t total = 0;
  std::uint64_t head_end = 0;
  std::uint64_t tail_start = 0;

  static StreamState from_json(const Field& field);
};

/// Whether all numbers are within their ranges.
bool is_plausible(const Usage& usage);

/// State of a process as the agent reports it.
struct ProcessState {
  std::string id;
  std::uint64_t number = 0;  ///< among its owner's processes, from 1; 0 means that an older agent started it
  Phase phase = Phase::running;
  EndKind end = EndKind::none;
  int end_code = 0;  ///< exit status or signal number
  Cause cause = Cause::none;
  StreamState out;
  StreamState err;
  StreamState side{};         ///< empty if it has no side channel
  std::uint64_t idle_ms = 0;  ///< since the last output or input
  bool stdin_open = false;
  WaitsForInput waits_for_input = WaitsForInput::no;
  bool paused = false;    ///< stopped by a signal
  bool terminal = false;  ///< it has one; all its output is in `out`
  std::int64_t pid = 0;
  std::int64_t started_at_ms = 0;  ///< wall clock, for people
  std::int64_t ended_at_ms = 0;
  /// Run time so far, by a clock that does not jump. nullopt if an older agent recorded the process.
  std::optional<std::int64_t> ran_ms;
  std::string command;  ///< cut to a preview
  std::string cwd;
  std::string owner;
  std::string rationale;
  Usage used;
  std::uint64_t children = 0;                 ///< live processes of its tree
  std::string path;                           ///< of its record in the container; its spools are in the same directory
  std::optional<CodeSessionLabel> session{};  ///< nullopt if it is not a code session

  [[nodiscard]] bool running() const { return phase == Phase::running; }

  void visit(Codec& codec);
};

nlohmann::json to_json(const StreamState& stream);
nlohmann::json to_json(const Usage& usage);

/// `proc_<digits>_<letters and digits>`, at most 64 characters: safe as a file name.
bool is_process_id(std::string_view id);
/// A field that must hold a process id.
const std::string& process_id_from(const Field& field);
/// The number in the short id of a process, such as `p3`; nullopt if the text is not one.
std::optional<std::uint64_t> process_number_in(std::string_view short_id);

}  // namespace dockbridge::wire
