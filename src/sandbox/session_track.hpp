#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox/session_events.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::sandbox {

/// A cell that has begun.
struct CellRecord {
  std::uint64_t number = 0;
  std::string key;            ///< of the request that began it; empty if the event was not seen
  std::string first_line;     ///< start of its code; empty if unknown
  wire::Offsets output_from;  ///< the output that belongs to the cell begins here
  std::vector<SessionEvent> displays{};
  std::uint64_t displays_left_out = 0;  ///< further ones that are not in `displays`
  std::optional<SessionEvent> end{};    ///< nullopt while it runs
  bool is_limited = false;              ///< it is interrupted after its time limit
};

/// Progress of a request to run a cell.
enum class CellProgress : std::uint8_t {
  unseen,   ///< no event yet
  running,  ///< it has begun
  ended,    ///< its end is in `CellRecord`
  earlier,  ///< it has ended, and other cells have run since
  refused,  ///< it was not and will not be run: another cell has its number
};

/// Reconstructs the state of a code session from the stream `side` of its process. Does no I/O. Parts of the stream may
/// be missing: the track then continues at the next event.
class SessionTrack {
 public:
  SessionTrack() = default;
  /// Calls `on_cell_end` for each cell that ends.
  explicit SessionTrack(std::function<void(const CellRecord& cell)> on_cell_end)
      : m_on_cell_end(std::move(on_cell_end)) {}

  /// Adds stored bytes of the stream, which begin at `offset`. Bytes that were added before are ignored.
  void add(std::uint64_t offset, std::string_view bytes);
  /// Offset after the last byte that was added. A wait for more events passes it as `WaitCondition::known_side`.
  [[nodiscard]] std::uint64_t next_offset() const { return m_next; }

  [[nodiscard]] const std::optional<SessionEvent>& ready() const { return m_ready; }
  [[nodiscard]] const std::optional<SessionEvent>& too_old() const { return m_too_old; }
  /// Whether the driver has announced that it ends because of the idle limit.
  [[nodiscard]] bool has_reached_idle_limit() const { return m_has_reached_idle_limit; }
  /// Number of the running cell, or of the last one; 0 before the first.
  [[nodiscard]] std::uint64_t last_cell() const { return m_cell ? m_cell->number : 0; }
  /// The running cell or the last one.
  [[nodiscard]] const std::optional<CellRecord>& cell() const { return m_cell; }
  [[nodiscard]] bool is_busy() const { return m_cell && !m_cell->end; }
  /// Output that was written before the latest end of a cell.
  [[nodiscard]] const wire::Offsets& output_end() const { return m_output_end; }
  /// Whether the number of cells is certain, although the start of the stream may be missing.
  [[nodiscard]] bool is_certain() const { return !m_has_gap || (m_cell && m_has_seen_begin); }
  [[nodiscard]] CellProgress progress_of(std::uint64_t cell, const std::string& key) const;
  /// The cell that a request with this key has begun, if it is one of the latest; 0 if it is not.
  [[nodiscard]] std::uint64_t cell_with_key(const std::string& key) const;
  /// Removes and returns the answer to a request. The answers of other requests are kept, a bounded number of them.
  std::optional<SessionEvent> take_answer(std::uint64_t request);
  /// Number of requests that the driver has rejected so far, and the message of the latest.
  [[nodiscard]] std::uint64_t bad_requests() const { return m_bad_requests; }
  [[nodiscard]] const std::string& bad_request() const { return m_bad_request; }

 private:
  void take_pieces();
  void take_text(std::string_view text);
  void take_line(std::string_view line);
  void take_event(SessionEvent event);
  void begin_cell(SessionEvent& event);
  void add_display(SessionEvent& event);

  std::function<void(const CellRecord& cell)> m_on_cell_end;
  std::uint64_t m_next = 0;
  std::string m_pieces;       // bytes that are not a whole piece yet
  std::string m_line;         // text that is not a whole line yet
  bool m_is_lost = false;     // the next piece must be searched for
  bool m_skips_line = false;  // the rest of the line is of no use
  bool m_has_gap = false;
  bool m_has_seen_begin = false;
  wire::Offsets m_output{};      // stamp of the current piece
  wire::Offsets m_output_end{};  // stamp of the latest end of a cell
  std::optional<SessionEvent> m_ready;
  std::optional<SessionEvent> m_too_old;
  bool m_has_reached_idle_limit = false;
  std::optional<CellRecord> m_cell;
  std::size_t m_display_bytes = 0;
  std::deque<std::pair<std::string, std::uint64_t>> m_keys;  // of the latest cells
  std::deque<std::string> m_stale_keys;                      // of requests that were refused
  std::deque<SessionEvent> m_answers;
  std::uint64_t m_bad_requests = 0;
  std::string m_bad_request;
};

}  // namespace dockbridge::sandbox
