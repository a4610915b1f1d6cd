#include "util/terminal_transcript.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "util/terminal_parser.hpp"

namespace dockbridge {

namespace {

/// Limit on the cells of all gaps between texts.
constexpr std::size_t k_max_gap_cells = 1'000'000;
/// In a longer line, inserting and deleting characters is ignored, because it would take too long.
constexpr std::size_t k_max_shifted = 8192;
constexpr int k_least_columns = 2;

/// Removes the first code point of valid UTF-8.
char32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t code = length == 1 ? first : first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < std::min(length, text.size()); ++i) {
    code = code << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  text.remove_prefix(std::min(length, text.size()));
  return code;
}

void append_character(std::string& text, char32_t code) {
  const auto last = [&](unsigned shift) { return static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += {static_cast<char>(0xC0U | code >> 6U), last(0)};
  } else if (code < 0x10000) {
    text += {static_cast<char>(0xE0U | code >> 12U), last(6), last(0)};
  } else {
    text += {static_cast<char>(0xF0U | code >> 18U), last(12), last(6), last(0)};
  }
}

/// Draws a piece. A line that is longer than the width of the terminal takes several rows of the screen. Cursor moves
/// count these rows, as on the terminal.
class Drawing {
 public:
  Drawing(int columns, int rows, bool from_start)
      : m_columns(static_cast<std::size_t>(std::max(columns, k_least_columns))),
        m_rows(static_cast<std::size_t>(std::max(rows, 1))),
        // The cursor's row is unknown. Assume the last row, where it is in the end.
        m_first(from_start ? 0 : m_rows - 1),
        m_lines(m_first + 1) {
    m_cursor.line = m_first;
  }

  void text(std::string_view run) {
    while (!m_in_alternate && !run.empty()) {
      put(take_character(run));
    }
  }

  void control(char byte) {
    if (m_in_alternate) {
      return;
    }
    if (byte == '\n' || byte == '\v' || byte == '\f') {
      next_line();
    } else if (byte == '\r') {
      m_cursor.column = row_start();
    } else if (byte == '\b') {
      m_cursor.column -= m_cursor.column > row_start() ? 1 : 0;
    } else if (byte == '\t') {
      put('\t');
    }
  }

  void sequence(const TerminalParser::Sequence& sequence) {
    if (sequence.has_mode(1049) || sequence.has_mode(1047) || sequence.has_mode(47)) {
      switch_screen(sequence.final == 'h');
    }
    if (m_in_alternate) {
      return;
    }
    if (addresses_screen(sequence)) {
      m_cursor.is_placed = true;
      m_cursor.is_drawing = true;
    }
    if (sequence.is_csi && !sequence.is_private()) {
      apply(sequence);
    } else if (!sequence.is_csi && sequence.parameters.empty() && sequence.final == '7') {
      m_saved = m_cursor;
    } else if (!sequence.is_csi && sequence.parameters.empty() && sequence.final == '8') {
      restore();
    }
  }

  /// Marks everything drawn so far as earlier output. The lines of the piece begin at the cursor.
  void begin_here() {
    m_first = m_cursor.line;
    m_has_changed_earlier = false;
    m_cursor.is_placed = m_cursor.is_drawing = false;
    for (Line& line : m_lines) {
      line.is_new = false;
    }
    m_lines[m_first].is_new = m_lines[m_first].cells.empty();
  }
  [[nodiscard]] bool is_complete() const { return !m_has_changed_earlier && !m_cursor.is_drawing; }

  /// The line of the cursor.
  [[nodiscard]] std::string line_text() const {
    std::string text;
    append(text, m_lines[m_cursor.line]);
    return text;
  }

  [[nodiscard]] std::string lines() const {
    std::size_t end = m_lines.size();
    while (end > m_cursor.line + 1 && is_blank(m_lines[end - 1])) {
      --end;
    }
    std::string text;
    bool is_first = true;
    for (std::size_t at = m_first; at < end; ++at) {
      const Line& line = m_lines[at];
      if (!line.is_new) {
        continue;
      }
      text += is_first ? "" : "\n";
      is_first = false;
      append(text, line);
    }
    return text;
  }

 private:
  struct Line {
    std::vector<char32_t> cells;
    std::size_t written = 0;  ///< end of the cells that were printed and not erased
    bool is_new = false;      ///< it was printed, or left blank, after other lines
  };
  struct Cursor {
    std::size_t line = 0;
    std::size_t column = 0;
    bool is_placed = false;   ///< text was placed at this row
    bool is_drawing = false;  ///< the screen was addressed, and no line was added after its last row since
  };

  void append(std::string& text, const Line& line) const {
    std::size_t size = line.cells.size();
    // Cells that only moves and erasures touched are not text, and neither is a row of blanks.
    const std::size_t least = size >= m_columns ? 0 : line.written;
    while (size > least && line.cells[size - 1] == ' ') {
      --size;
    }
    for (std::size_t i = 0; i < size; ++i) {
      append_character(text, line.cells[i]);
    }
  }

  static bool is_blank(const Line& line) {
    return std::all_of(line.cells.begin(), line.cells.end(), [](char32_t cell) { return cell == ' '; });
  }

  /// Column of the line at which the cursor's row begins. A cursor after the last column is still in that row.
  [[nodiscard]] std::size_t row_start() const {
    const std::size_t column = m_cursor.column;
    const bool is_behind = column > 0 && column % m_columns == 0 && column == m_wraps_at;
    return (is_behind ? column - 1 : column) / m_columns * m_columns;
  }

  [[nodiscard]] std::size_t top() const { return m_lines.size() - std::min(m_lines.size(), m_rows); }

  /// The line of the cursor, for changing it.
  Line& line() {
    m_has_changed_earlier = m_has_changed_earlier || m_cursor.line < m_first;
    return m_lines[m_cursor.line];
  }

  void put(char32_t character) {
    Line& target = line();
    m_is_cleared = false;
    target.is_new = !m_cursor.is_placed;
    if (target.cells.size() <= m_cursor.column) {
      const std::size_t gap = m_cursor.column - target.cells.size();
      m_gap_cells += gap;
      if (m_gap_cells > k_max_gap_cells) {
        m_cursor.column = target.cells.size();
      }
      target.cells.resize(m_cursor.column + 1, ' ');
    }
    target.cells[m_cursor.column] = character;
    ++m_cursor.column;
    m_wraps_at = m_cursor.column;
    target.written = std::max(target.written, m_cursor.column);
  }

  void next_line() {
    line();
    m_cursor.column = 0;
    ++m_cursor.line;
    if (m_cursor.line == m_lines.size()) {
      m_lines.emplace_back();
      m_cursor.is_placed = m_cursor.is_drawing = false;
    }
    m_lines[m_cursor.line].is_new = m_lines[m_cursor.line].is_new || !m_cursor.is_placed;
  }

  void switch_screen(bool to_alternate) {
    if (!to_alternate && !m_in_alternate) {
      // The program had switched to it before this piece, so all output until here belongs to that screen.
      m_lines.resize(m_first + 1);
      m_lines[m_first] = Line{};
      m_cursor = Cursor{m_first, 0, false, false};
      m_has_changed_earlier = false;
    }
    m_in_alternate = to_alternate;
  }

  void restore() {
    m_cursor = m_saved;
    m_cursor.line = std::min(std::max(m_cursor.line, top()), m_lines.size() - 1);
  }

  /// Shows the rest of a line that was partly erased.
  void note_erased(Line& target) const { target.is_new = target.is_new || (!m_cursor.is_placed && !is_blank(target)); }

  void erase_line(int how) {
    Line& target = line();
    const std::size_t size = target.cells.size();
    if (how == 0) {
      target.cells.resize(std::min(m_cursor.column, target.cells.size()));
    } else {
      const std::size_t end = how == 1 ? std::min(m_cursor.column + 1, target.cells.size()) : target.cells.size();
      std::fill_n(target.cells.begin(), end, U' ');
    }
    if (how == 2) {
      target.cells.clear();
    }
    target.written = std::min(target.written, target.cells.size());
    if (target.cells.size() < size) {
      note_erased(target);
    }
  }

  void erase_screen(int how) {
    const bool is_all = how == 2 || (how == 0 && m_cursor.line == top() && m_cursor.column == 0);
    const std::size_t from = how == 0 ? m_cursor.line + 1 : top();
    const std::size_t to = how == 1 ? m_cursor.line : m_lines.size();
    for (std::size_t at = from; at < to; ++at) {
      m_lines[at] = Line{};
    }
    if (how < 2) {
      erase_line(how);
      m_lines[m_cursor.line].is_new = m_lines[m_cursor.line].is_new && !m_cursor.is_placed;
    }
    if (is_all) {
      // From the first row, lines follow one another again.
      m_first = top();
      m_has_changed_earlier = false;
      m_is_cleared = true;
      m_cursor.is_placed = false;
    }
  }

  void move_lines(int by) {
    // The line is longer than the width of the terminal.
    while (by < 0 && m_cursor.column >= m_columns && row_start() > 0) {
      m_cursor.column -= m_columns;
      ++by;
    }
    const auto at = static_cast<std::int64_t>(m_cursor.line) + by;
    m_cursor.line = static_cast<std::size_t>(
        std::clamp<std::int64_t>(at, static_cast<std::int64_t>(top()), static_cast<std::int64_t>(m_lines.size()) - 1));
  }

  void place(int row, int column) {
    m_cursor.line = std::min(top() + static_cast<std::size_t>(row - 1), top() + m_rows - 1);
    if (m_cursor.line >= m_lines.size()) {
      m_lines.resize(m_cursor.line + 1);
    }
    m_cursor.is_placed = !m_is_cleared || row > 1;
    move_to_column(column);
  }

  void move_to_column(int column) {
    m_cursor.column = row_start() + std::min(static_cast<std::size_t>(column - 1), m_columns - 1);
  }

  void shift(int by) {
    Line& target = line();
    if (target.cells.size() > k_max_shifted) {
      return;
    }
    const std::size_t at = std::min(m_cursor.column, target.cells.size());
    const auto begin = target.cells.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t count = std::min(static_cast<std::size_t>(std::abs(by)), m_columns);
    if (by < 0) {
      const std::size_t erased = std::min(count, target.cells.size() - at);
      target.cells.erase(begin, begin + static_cast<std::ptrdiff_t>(erased));
      target.written = std::min(target.written, target.cells.size());
      note_erased(target);
    } else if (m_gap_cells + count <= k_max_gap_cells) {
      m_gap_cells += count;
      target.cells.insert(begin, count, U' ');
      target.written = std::max(target.written, target.cells.size());
    }
  }

  void apply(const TerminalParser::Sequence& sequence) {
    const int count = sequence.number(0, 1);
    switch (sequence.final) {
      case 'A':
        move_lines(-count);
        break;
      case 'B':
        move_lines(count);
        break;
      case 'E':
        move_lines(count);
        m_cursor.column = 0;
        break;
      case 'F':
        move_lines(-count);
        m_cursor.column = 0;
        break;
      case 'C':
        m_cursor.column = std::min(m_cursor.column + static_cast<std::size_t>(count), row_start() + m_columns - 1);
        break;
      case 'D':
        m_cursor.column -= std::min(static_cast<std::size_t>(count), m_cursor.column - row_start());
        break;
      case 'G':
      case '`':
        move_to_column(count);
        break;
      case 'H':
      case 'f':
        place(count, sequence.number(1, 1));
        break;
      case 'd':
        place(count, static_cast<int>(m_cursor.column - row_start()) + 1);
        break;
      case 'r':
        place(1, 1);
        break;
      case 'J':
        erase_screen(std::min(sequence.number(0, 0), 2));
        break;
      case 'K':
        erase_line(std::min(sequence.number(0, 0), 2));
        break;
      case 'P':
        shift(-count);
        break;
      case '@':
        shift(count);
        break;
      case 's':
        m_saved = m_cursor;
        break;
      case 'u':
        restore();
        break;
      default:
        break;
    }
  }

  std::size_t m_columns;
  std::size_t m_rows;
  std::size_t m_first;  // first line of the piece; lines above it are earlier output
  std::vector<Line> m_lines;
  Cursor m_cursor;
  Cursor m_saved;
  std::size_t m_wraps_at = 0;  // the column after the latest printed character
  std::size_t m_gap_cells = 0;
  bool m_in_alternate = false;
  bool m_is_cleared = false;  // the screen is still empty since it was cleared
  bool m_has_changed_earlier = false;
};

}  // namespace

TerminalTranscript transcribe(const TerminalPiece& piece) {
  Drawing drawing(piece.columns, piece.rows, piece.from_start);
  TerminalParser parser;
  parser.feed(piece.before, drawing);
  drawing.begin_here();
  std::string prompt = drawing.line_text();
  parser.feed(piece.printed, drawing);
  return {drawing.lines(), std::move(prompt), drawing.is_complete()};
}

}  // namespace dockbridge
