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

constexpr std::size_t k_room_for_marks = 100;
/// Bytes and lines of the remarks within the output.
constexpr std::size_t k_room_for_remarks = 200;
constexpr std::size_t k_remark_lines = 8;
constexpr int k_max_attempts = 6;

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Reads the bytes of one stream, from the snapshot or from the container.
class StreamSource {
 public:
  StreamSource(Sandbox& sandbox, const Snapshot& snapshot, Stream stream, const CallLimit& limit)
      : m_sandbox(sandbox), m_snapshot(snapshot), m_stream(stream), m_limit(limit) {}

  [[nodiscard]] const StreamState& state() const {
    return m_stream == Stream::out ? m_snapshot.state.out : m_snapshot.state.err;
  }
  [[nodiscard]] const char* name() const { return m_stream == Stream::out ? "stdout" : "stderr"; }
  [[nodiscard]] const Snapshot& snapshot() const { return m_snapshot; }

  /// Bytes [from, to), which were in one stored piece when the snapshot was taken. If the ring has overwritten the
  /// first of them since, raises `from` and returns the others.
  Result<std::string> bytes(std::uint64_t& from, std::uint64_t to) const {
    if (m_snapshot.whole) {
      const std::string& all = m_stream == Stream::out ? m_snapshot.out : m_snapshot.err;
      return all.substr(from, to - from);
    }
    std::string result;
    std::uint64_t at = from;
    while (at < to) {
      auto slice = m_sandbox.processes().read(m_snapshot.state.id, m_stream, at, to - at, m_limit);
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

std::string plain_text(std::string_view bytes, bool raw, std::size_t& replaced) {
  ValidText valid = to_valid_utf8(bytes);
  replaced += valid.replaced_bytes;
  return raw ? std::move(valid.text) : plain_terminal_text(valid.text);
}

/// Text for people and models.
std::string presentable(std::string text, bool raw) {
  return raw ? std::move(text) : fold_repeated_lines(text);
}

/// Sets `text`, `content` and the positions of the gaps.
void render(ShownStream& shown, bool raw) {
  auto part = shown.parts.begin();
  auto gap = shown.gaps.begin();
  shown.text = text_of(shown.parts, [&](std::string_view bytes) {
    for (; gap != shown.gaps.end() && gap->from <= part->from; ++gap) {
      gap->at = shown.content.size();
    }
    ++part;
    std::string plain = plain_text(bytes, raw, shown.replaced);
    shown.content += plain;
    return presentable(std::move(plain), raw);
  });
  for (; gap != shown.gaps.end(); ++gap) {
    gap->at = shown.content.size();
  }
}

void leave_out(ShownStream& shown, std::uint64_t from, std::uint64_t to, std::uint64_t not_stored) {
  if (from < to) {
    shown.gaps.push_back({from, to, not_stored});
    shown.left_out += to - from;
  }
}

std::string gap_note(const StreamSource& source, std::uint64_t from, std::uint64_t to, std::uint64_t not_kept) {
  std::string note = fmt::format("[{} bytes of {} left out", to - from, source.name());
  if (not_kept == to - from) {
    return note + ", not stored]";
  }
  return note + (not_kept > 0 ? fmt::format(", {} of them not stored]", not_kept) : "]");
}

std::string not_kept_note(const StreamSource& source, std::uint64_t from, std::uint64_t to) {
  return fmt::format("[{} bytes of {} ({}–{}) are not stored]", to - from, source.name(), from, to);
}

/// Removes an incomplete character at the end of a running process's output: the next reply shows it. Returns its size.
std::size_t hold_back(const StreamSource& source, std::string& bytes) {
  const std::size_t half = source.snapshot().state.running() ? incomplete_utf8_tail(bytes) : 0;
  bytes.resize(bytes.size() - half);
  return half;
}

/// Number of the bytes [from, to) that are not stored.
std::uint64_t missing_in(const StreamState& state, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t begin = std::max(from, state.head_end);
  const std::uint64_t end = std::min(to, state.tail_start);
  return end > begin ? end - begin : 0;
}

/// Start of the stored bytes that reach to the end of the stream.
std::uint64_t tail_begin(const StreamState& state) {
  return state.head_end == state.tail_start ? 0 : state.tail_start;
}

/// Cuts the last line if it is incomplete and not very long. Returns how many bytes were cut.
std::size_t cut_last_line(std::string& head) {
  const std::size_t newline = head.rfind('\n');
  const bool cuts = newline != std::string::npos && newline + 1 >= head.size() / 2;
  const std::size_t kept = cuts ? newline + 1 : head.size() - incomplete_utf8_tail(head);
  const std::size_t cut = head.size() - kept;
  head.resize(kept);
  return cut;
}

/// Cuts the first line of `tail` likewise.
std::size_t cut_first_line(std::string& tail) {
  const std::size_t newline = tail.find('\n');
  const bool cuts = newline != std::string::npos && newline < tail.size() / 2;
  const std::size_t cut = cuts ? newline + 1 : partial_utf8_start(tail);
  tail.erase(0, cut);
  return cut;
}

/// Whether bytes of the stream after `begin` are not stored.
bool has_gap(const StreamState& state, std::uint64_t begin) {
  return state.head_end < state.tail_start && begin < state.tail_start;
}

/// The first and the last part of the stream after `begin`, `budget` bytes together, with a remark in between.
Result<ShownStream> excerpt(const StreamSource& source, std::uint64_t begin, std::size_t budget) {
  const StreamState& state = source.state();
  ShownStream shown;
  shown.total = state.total;
  const std::uint64_t stored_end = has_gap(state, begin) ? std::max(begin, state.head_end) : state.total;
  const std::uint64_t head_end = std::min<std::uint64_t>(stored_end, begin + budget / 3);
  const std::uint64_t tail_budget = std::min<std::uint64_t>(state.total, budget - budget / 3);
  std::uint64_t tail_start = std::max({head_end, tail_begin(state), state.total - tail_budget});
  const std::uint64_t tail_wanted = tail_start;
  std::uint64_t head_start = begin;
  auto head = source.bytes(head_start, head_end);
  auto tail = source.bytes(tail_start, state.total);
  if (!head || !tail) {
    return fail(!head ? head.error() : tail.error());
  }
  shown.next = state.total - hold_back(source, *tail);
  const std::uint64_t gap_begin = head_end - cut_last_line(*head);
  const std::uint64_t gap_end = tail_start + cut_first_line(*tail);
  shown.rest = gap_begin;
  // The ring may have lost more since the snapshot.
  shown.not_kept = missing_in(state, gap_begin, tail_wanted) + (tail_start - tail_wanted);
  leave_out(shown, begin, head_start, head_start - begin);
  leave_out(shown, gap_begin, gap_end, shown.not_kept);
  shown.parts = {{head_start, std::move(*head)},
                 {gap_end, std::move(*tail), gap_note(source, gap_begin, gap_end, shown.not_kept)}};
  return shown;
}

/// The stream after `begin` if it fits, else an excerpt.
Result<ShownStream> whole_or_excerpt(const StreamSource& source, std::uint64_t begin, const OutputRequest& request,
                                     std::size_t budget) {
  const StreamState& state = source.state();
  begin = std::min(begin, state.total);
  const std::size_t excerpt_bytes = std::min(budget, request.excerpt);
  if (state.total - begin > budget || has_gap(state, begin)) {
    return excerpt(source, begin, excerpt_bytes);
  }
  ShownStream shown;
  shown.total = state.total;
  std::uint64_t from = begin;
  auto bytes = source.bytes(from, state.total);
  if (!bytes) {
    return fail(bytes.error());
  }
  shown.next = state.total - hold_back(source, *bytes);
  shown.not_kept = from - begin;
  leave_out(shown, begin, from, shown.not_kept);
  std::size_t replaced = 0;
  const std::string text = presentable(plain_text(*bytes, request.raw, replaced), request.raw);
  if (request.max_lines > 0 && lines_of(text) > request.max_lines && state.total - begin > excerpt_bytes) {
    return excerpt(source, begin, excerpt_bytes);
  }
  shown.parts = {{from, std::move(*bytes), from > begin ? not_kept_note(source, begin, from) : ""}};
  return shown;
}

/// Removes the lines after the first `max`; 0 means no limit. Returns whether it removed any.
bool keep_lines(std::string& bytes, std::size_t max) {
  std::size_t end = 0;
  for (std::size_t lines = 0; lines < max; ++lines) {
    const std::size_t newline = bytes.find('\n', end);
    if (newline == std::string::npos) {
      return false;
    }
    end = newline + 1;
  }
  const bool removes = max > 0 && end < bytes.size();
  bytes.resize(removes ? end : bytes.size());
  return removes;
}

/// The stream from `since` on, as much as fits.
Result<ShownStream> read_on(const StreamSource& source, std::uint64_t since, const OutputRequest& request,
                            std::size_t budget) {
  const StreamState& state = source.state();
  ShownStream shown;
  shown.total = state.total;
  since = std::min(since, state.total);
  std::uint64_t from = since;
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
  const bool lines_cut = keep_lines(*bytes, request.max_lines);
  // The rest of a character can still follow, except at a gap and after the end of the process.
  if (!lines_cut && (to < piece_end || (to == state.total && source.snapshot().state.running()))) {
    bytes->resize(bytes->size() - incomplete_utf8_tail(*bytes));
  }
  shown.next = from + bytes->size();
  shown.not_kept = from - since;
  leave_out(shown, since, from, shown.not_kept);
  leave_out(shown, shown.next, state.total, missing_in(state, shown.next, state.total));
  shown.parts = {{from, std::move(*bytes), shown.not_kept > 0 ? not_kept_note(source, since, from) : ""}};
  if (lines_cut || (shown.next < state.total && to < state.total)) {
    shown.rest = shown.next;
    shown.parts.push_back(
        {shown.next, "", fmt::format("[{} more bytes of {}]", state.total - shown.next, source.name())});
  }
  return shown;
}

/// The stream after `since`, or its end if it does not fit.
Result<ShownStream> newest(const StreamSource& source, std::uint64_t since, std::size_t budget) {
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
  shown.not_kept = missing_in(state, since, from);
  leave_out(shown, since, from + skipped, shown.not_kept);
  const std::string remark =
      shown.left_out > 0 ? fmt::format("[{} bytes of {} before this]", shown.left_out, source.name()) : "";
  shown.parts = {{from + skipped, std::move(*bytes), remark}};
  return shown;
}

Result<ShownStream> last_lines(const StreamSource& source, std::size_t lines, std::size_t budget) {
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
  shown.not_kept = missing_in(state, 0, from + begin);
  leave_out(shown, 0, from + begin, shown.not_kept);
  const std::string remark = cut_line ? fmt::format("[{} begins {} bytes before this; raise maxOutput for more]",
                                                    source.name(), shown.left_out)
                                      : "";
  shown.parts = {{shown.left_out, std::move(*bytes), remark}};
  return shown;
}

/// `begin`: offset of the first byte that is requested.
Result<ShownStream> show(const StreamSource& source, const OutputRequest& request, std::size_t budget,
                         std::uint64_t begin) {
  if (request.tail_lines) {
    return last_lines(source, *request.tail_lines, budget);
  }
  if (request.latest) {
    return newest(source, begin, budget);
  }
  return request.since ? read_on(source, begin, request, budget) : whole_or_excerpt(source, begin, request, budget);
}

/// Marks between the streams count as output. Drops every other mark until the text fits.
std::string both_streams(const ShownStream& out, const ShownStream& err, wire::WriteOrder order,
                         const OutputRequest& request) {
  const std::size_t most = std::max(request.max_bytes, out.text.size() + err.text.size() + k_room_for_marks);
  std::size_t replaced = 0;  // counted in the streams
  const auto render = [&](std::string_view bytes) {
    return presentable(plain_text(bytes, request.raw, replaced), request.raw);
  };
  std::string text = interleaved_text(out.parts, err.parts, order, render);
  const auto too_long = [&] {
    return text.size() > most || (request.max_lines > 0 && lines_of(text) > request.max_lines);
  };
  while (too_long() && !order.empty()) {
    for (std::size_t i = 0; i < order.size() / 2; ++i) {
      order[i] = order[2 * i + 1];
    }
    order.resize(order.size() / 2);
    text = interleaved_text(out.parts, err.parts, order, render);
  }
  return text;
}

}  // namespace

std::string Cursor::text() const {
  return fmt::format("{}:{}", out, err);
}

std::optional<Cursor> Cursor::parse(const std::string& text) {
  Cursor cursor;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, cursor.out);
  if (first.ec != std::errc() || (first.ptr != end && *first.ptr != ':')) {
    return std::nullopt;
  }
  const bool has_second = first.ptr != end;
  const auto second = has_second ? std::from_chars(first.ptr + 1, end, cursor.err) : first;
  const bool is_cursor =
      second.ec == std::errc() && second.ptr == end && std::max(cursor.out, cursor.err) <= wire::k_max_stream_bytes;
  return is_cursor ? std::optional(cursor) : std::nullopt;
}

std::size_t ShownOutput::bytes() const {
  std::size_t sum = 0;
  for (const ShownStream* stream : {&out, &err}) {
    for (const StreamPart& part : stream->parts) {
      sum += part.bytes.size();
    }
  }
  return sum;
}

std::optional<OutputRequest> request_less(const OutputRequest& request, const std::string& text, std::size_t bytes) {
  const auto part = [](std::size_t most, std::size_t has) {
    return has > most ? static_cast<double>(most) / static_cast<double>(has) : 1.0;
  };
  const bool bounds_lines = request.max_lines > 0 && !request.tail_lines;
  const double fits = std::min(part(request.max_bytes + k_room_for_remarks, text.size()),
                               bounds_lines ? part(request.max_lines + k_remark_lines, lines_of(text)) : 1.0);
  if (fits >= 1.0 || bytes == 0) {
    return std::nullopt;
  }
  constexpr double k_slack = 0.9;  // the text of the remaining bytes may be longer in proportion
  OutputRequest less = request;
  less.max_bytes = static_cast<std::size_t>(static_cast<double>(std::min(bytes, request.max_bytes)) * fits * k_slack);
  return less;
}

namespace {

/// `request.max_bytes` bounds the bytes of the process here, not the text.
Result<ShownOutput> collect_bytes(Sandbox& sandbox, const Snapshot& snapshot, const OutputRequest& request,
                                  const CallLimit& limit) {
  const Cursor begin = request.since.value_or(request.shown);
  const std::uint64_t out_wanted = snapshot.state.out.total - std::min(begin.out, snapshot.state.out.total);
  const std::uint64_t err_wanted = snapshot.state.err.total - std::min(begin.err, snapshot.state.err.total);
  const bool shows_all = !request.since && !request.latest && !request.tail_lines;
  const bool is_excerpt = shows_all && out_wanted + err_wanted > request.max_bytes;
  const std::uint64_t budget = is_excerpt ? std::min(request.excerpt, request.max_bytes) : request.max_bytes;
  // Each stream may use the budget that the other does not need; a quarter is reserved for stderr.
  const std::uint64_t out_at_most = std::min<std::uint64_t>(out_wanted, budget);
  const std::uint64_t err_budget =
      std::min<std::uint64_t>(err_wanted, std::max<std::uint64_t>(budget / 4, budget - out_at_most));
  const std::uint64_t out_budget = budget - err_budget;

  auto out = show({sandbox, snapshot, Stream::out, limit}, request, out_budget, begin.out);
  auto err = show({sandbox, snapshot, Stream::err, limit}, request, err_budget, begin.err);
  if (!out || !err) {
    return fail(!out ? out.error() : err.error());
  }
  out->from = request.tail_lines ? 0 : std::min(begin.out, out->total);
  err->from = request.tail_lines ? 0 : std::min(begin.err, err->total);
  render(*out, request.raw);
  render(*err, request.raw);
  std::string text = err->text.empty() ? out->text : both_streams(*out, *err, snapshot.order, request);
  return ShownOutput{std::move(*out), std::move(*err), std::move(text)};
}

}  // namespace

Result<ShownOutput> collect_output(Sandbox& sandbox, const Snapshot& snapshot, const OutputRequest& request,
                                   const CallLimit& limit) {
  auto output = collect_bytes(sandbox, snapshot, request, limit);
  for (int attempt = 1; attempt < k_max_attempts && output; ++attempt) {
    const auto less = request_less(request, output->text, output->bytes());
    if (!less) {
      break;
    }
    output = collect_bytes(sandbox, snapshot, *less, limit);
  }
  return output;
}

}  // namespace dockbridge::tools
