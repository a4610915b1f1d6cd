#include "tools/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using sandbox::CallLimit;
using sandbox::Sandbox;
using sandbox::Snapshot;
using sandbox::Stream;
using wire::StreamState;

/// How the bytes of one stream are got, whether they came along or lie in the container.
class StreamSource {
 public:
  StreamSource(Sandbox& sandbox, const Snapshot& snapshot, Stream stream, const CallLimit& limit)
      : m_sandbox(sandbox), m_snapshot(snapshot), m_stream(stream), m_limit(limit) {}

  [[nodiscard]] const StreamState& state() const {
    return m_stream == Stream::out ? m_snapshot.state.out : m_snapshot.state.err;
  }
  [[nodiscard]] const char* name() const { return m_stream == Stream::out ? "stdout" : "stderr"; }
  [[nodiscard]] const Snapshot& snapshot() const { return m_snapshot; }

  /// Bytes [from, to), both within one stored piece when the snapshot was taken. Fewer at the start if the ring has
  /// moved on since: `from` is then raised.
  Result<std::string> bytes(std::uint64_t& from, std::uint64_t to) const {
    if (m_snapshot.whole) {
      const std::string& all = m_stream == Stream::out ? m_snapshot.out : m_snapshot.err;
      return all.substr(from, to - from);
    }
    std::string result;
    std::uint64_t at = from;
    while (at < to) {
      auto slice = m_sandbox.read(m_snapshot.state.id, m_stream, at, to - at, m_limit);
      if (!slice) {
        return fail(slice.error());
      }
      if (slice->offset > at) {
        result.clear();
        from = std::min(slice->offset, to);
        at = from;
      }
      if (slice->bytes.empty()) {
        break;
      }
      const auto part = std::string_view(slice->bytes).substr(0, to - at);
      result += part;
      at += part.size();
    }
    return result;
  }

 private:
  Sandbox& m_sandbox;
  const Snapshot& m_snapshot;
  Stream m_stream;
  const CallLimit& m_limit;
};

std::string presentable(std::string_view bytes, bool raw, std::size_t& replaced) {
  ValidText valid = to_valid_utf8(bytes);
  replaced += valid.replaced_bytes;
  return raw ? std::move(valid.text) : fold_repeated_lines(plain_terminal_text(valid.text));
}

std::string gap_note(const StreamSource& source, std::uint64_t from, std::uint64_t to, std::uint64_t not_kept) {
  std::string note = fmt::format("[{} bytes of {} left out here ({}–{})", to - from, source.name(), from, to);
  if (not_kept > 0) {
    note += fmt::format("; {} of them were not kept", not_kept);
  }
  if (not_kept < to - from) {
    const Cursor cursor = std::string_view(source.name()) == "stdout" ? Cursor{from, 0} : Cursor{0, from};
    note += fmt::format("; check_process with since \"{}\" reads on there", cursor.text());
  }
  return note + "]";
}

/// While the process runs, half a character at the end is left for the next reply. Returns how many bytes those are.
std::size_t hold_back(const StreamSource& source, std::string& bytes) {
  const std::size_t half = source.snapshot().state.running() ? incomplete_utf8_tail(bytes) : 0;
  bytes.resize(bytes.size() - half);
  return half;
}

/// How many of the bytes [from, to) the spool does not have.
std::uint64_t missing_in(const StreamState& state, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t begin = std::max(from, state.head_end);
  const std::uint64_t end = std::min(to, state.tail_start);
  return end > begin ? end - begin : 0;
}

/// Where the stored bytes that reach to the end of the stream begin.
std::uint64_t tail_begin(const StreamState& state) {
  return state.head_end == state.tail_start ? 0 : state.tail_start;
}

/// Everything if it fits, else its beginning and its end with a note in between.
Result<ShownStream> head_and_tail(const StreamSource& source, std::size_t budget, bool raw) {
  const StreamState& state = source.state();
  ShownStream shown;
  shown.total = state.total;
  shown.next = state.total;
  const bool fits = state.total <= budget && state.head_end == state.tail_start;
  const std::uint64_t head_end = fits ? state.total : std::min<std::uint64_t>(state.head_end, budget * 2 / 5);
  const std::uint64_t tail_budget = std::min<std::uint64_t>(state.total, budget - budget * 2 / 5);
  std::uint64_t tail_start = fits ? state.total : std::max({head_end, tail_begin(state), state.total - tail_budget});
  const std::uint64_t tail_wanted = tail_start;
  std::uint64_t zero = 0;
  auto head = source.bytes(zero, head_end);
  auto tail = source.bytes(tail_start, state.total);
  if (!head || !tail) {
    return fail(!head ? head.error() : tail.error());
  }
  shown.next -= hold_back(source, tail->empty() ? *head : *tail);
  if (tail_start > head_end) {
    const std::size_t cut = incomplete_utf8_tail(*head);
    head->resize(head->size() - cut);
    const std::size_t skipped = partial_utf8_start(*tail);
    tail->erase(0, skipped);
    const std::uint64_t gap_begin = head_end - cut;
    const std::uint64_t gap_end = tail_start + skipped;
    shown.left_out = gap_end - gap_begin;
    // What the ring has lost since the snapshot comes on top.
    shown.not_kept = missing_in(state, gap_begin, tail_wanted) + (tail_start - tail_wanted);
    shown.text = presentable(*head, raw, shown.replaced);
    shown.text += fmt::format("{}{}\n", shown.text.empty() || shown.text.ends_with('\n') ? "" : "\n",
                              gap_note(source, gap_begin, gap_end, shown.not_kept));
    shown.text += presentable(*tail, raw, shown.replaced);
  } else {
    shown.text = presentable(*head + *tail, raw, shown.replaced);
  }
  return shown;
}

/// From `since` on, as much as fits; the cursor then tells where to go on.
Result<ShownStream> read_on(const StreamSource& source, std::uint64_t since, std::size_t budget, bool raw) {
  const StreamState& state = source.state();
  ShownStream shown;
  shown.total = state.total;
  std::uint64_t from = std::min(since, state.total);
  if (from >= state.head_end && from < state.tail_start) {
    from = state.tail_start;
  }
  const std::uint64_t piece_end =
      from < state.head_end && state.head_end < state.tail_start ? state.head_end : state.total;
  const std::uint64_t to = std::min<std::uint64_t>(piece_end, from + budget);
  auto bytes = source.bytes(from, to);
  if (!bytes) {
    return fail(bytes.error());
  }
  // Held back only if the rest of the character can still come: not at a gap, and not when the process has ended.
  if (to < piece_end || (to == state.total && source.snapshot().state.running())) {
    bytes->resize(bytes->size() - incomplete_utf8_tail(*bytes));
  }
  shown.next = from + bytes->size();
  shown.not_kept = from - std::min(since, from);
  shown.left_out = shown.not_kept + (state.total - shown.next);
  if (shown.not_kept > 0) {
    shown.text = fmt::format("[{} bytes of {} ({}–{}) were not kept]\n", shown.not_kept, source.name(), since, from);
  }
  shown.text += presentable(*bytes, raw, shown.replaced);
  if (shown.next < state.total && to < state.total) {
    shown.text += fmt::format("{}[{} more bytes of {}]\n", shown.text.ends_with('\n') ? "" : "\n",
                              state.total - shown.next, source.name());
  }
  return shown;
}

/// What came after `since`, its end if that is too much.
Result<ShownStream> newest(const StreamSource& source, std::uint64_t since, std::size_t budget, bool raw) {
  const StreamState& state = source.state();
  ShownStream shown;
  shown.total = state.total;
  since = std::min(since, state.total);
  std::uint64_t from = std::max({since, tail_begin(state), state.total - std::min<std::uint64_t>(state.total, budget)});
  auto bytes = source.bytes(from, state.total);
  if (!bytes) {
    return fail(bytes.error());
  }
  shown.next = state.total - hold_back(source, *bytes);
  const std::size_t skipped = from > since ? partial_utf8_start(*bytes) : 0;
  bytes->erase(0, skipped);
  shown.left_out = from + skipped - since;
  shown.not_kept = missing_in(state, since, from);
  shown.text = shown.left_out > 0 ? fmt::format("[{} bytes of {} before this]\n", shown.left_out, source.name()) : "";
  shown.text += presentable(*bytes, raw, shown.replaced);
  return shown;
}

Result<ShownStream> last_lines(const StreamSource& source, std::size_t lines, std::size_t budget, bool raw) {
  const StreamState& state = source.state();
  ShownStream shown;
  shown.total = state.total;
  shown.next = state.total;
  std::uint64_t from = std::max(tail_begin(state), state.total - std::min<std::uint64_t>(state.total, budget));
  auto bytes = source.bytes(from, state.total);
  if (!bytes) {
    return fail(bytes.error());
  }
  shown.next -= hold_back(source, *bytes);
  std::size_t begin = bytes->size();
  std::size_t found = 0;
  while (begin > 0) {
    if ((*bytes)[begin - 1] == '\n' && begin != bytes->size() && ++found == lines) {
      break;
    }
    --begin;
  }
  const bool cut_line = begin == 0 && from > tail_begin(state);
  begin += cut_line ? partial_utf8_start(*bytes) : 0;
  bytes->erase(0, begin);
  shown.left_out = from + begin;
  shown.not_kept = missing_in(state, 0, shown.left_out);
  if (cut_line) {
    shown.text =
        fmt::format("[{} begins {} bytes before this; raise maxOutput for more]\n", source.name(), shown.left_out);
  }
  shown.text += presentable(*bytes, raw, shown.replaced);
  return shown;
}

Result<ShownStream> show(const StreamSource& source, const OutputRequest& request, std::size_t budget,
                         std::uint64_t since) {
  if (request.tail_lines) {
    return last_lines(source, *request.tail_lines, budget, request.raw);
  }
  if (request.latest) {
    return newest(source, since, budget, request.raw);
  }
  return request.since ? read_on(source, since, budget, request.raw) : head_and_tail(source, budget, request.raw);
}

}  // namespace

std::string Cursor::text() const {
  return fmt::format("{}:{}", out, err);
}

std::optional<Cursor> Cursor::parse(const std::string& text) {
  Cursor cursor;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, cursor.out);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') {
    return std::nullopt;
  }
  const auto second = std::from_chars(first.ptr + 1, end, cursor.err);
  const bool is_cursor =
      second.ec == std::errc() && second.ptr == end && std::max(cursor.out, cursor.err) <= wire::k_max_stream_bytes;
  return is_cursor ? std::optional(cursor) : std::nullopt;
}

Result<ShownOutput> collect_output(Sandbox& sandbox, const Snapshot& snapshot, const OutputRequest& request,
                                   const CallLimit& limit) {
  const Cursor since = request.since.value_or(Cursor{});
  const std::uint64_t out_wanted = snapshot.state.out.total - std::min(since.out, snapshot.state.out.total);
  const std::uint64_t err_wanted = snapshot.state.err.total - std::min(since.err, snapshot.state.err.total);
  // stdout may have what stderr does not need, but stderr gets its quarter in any case.
  const std::uint64_t out_at_most = std::min<std::uint64_t>(out_wanted, request.max_bytes);
  const std::uint64_t err_budget = std::min<std::uint64_t>(
      err_wanted, std::max<std::uint64_t>(request.max_bytes / 4, request.max_bytes - out_at_most));
  const std::uint64_t out_budget = request.max_bytes - err_budget;

  auto out = show({sandbox, snapshot, Stream::out, limit}, request, out_budget, since.out);
  auto err = show({sandbox, snapshot, Stream::err, limit}, request, err_budget, since.err);
  if (!out || !err) {
    return fail(!out ? out.error() : err.error());
  }
  return ShownOutput{std::move(*out), std::move(*err)};
}

}  // namespace dockbridge::tools
