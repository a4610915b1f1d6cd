#include "tools/output.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "unit/sandbox/world.hpp"
#include "util/text.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Sandbox;
using sandbox::Snapshot;
using tools::Cursor;
using tools::k_default_excerpt;
using tools::k_default_max_output;
using tools::OutputRequest;
using tools::ShownOutput;
using tools::ShownStream;

namespace {

const std::string k_sample_process = "proc_1_abc";

wire::StreamState whole_stream(const std::string& content) {
  return {content.size(), content.size(), content.size()};
}

/// A process that has ended, with all its output in the snapshot.
Snapshot carried(const std::string& out, const std::string& err = {}) {
  Snapshot snapshot;
  snapshot.state.id = k_sample_process;
  snapshot.state.phase = wire::Phase::closed;
  snapshot.state.out = whole_stream(out);
  snapshot.state.err = whole_stream(err);
  snapshot.whole = true;
  snapshot.out = out;
  snapshot.err = err;
  return snapshot;
}

ShownOutput collect(const Snapshot& snapshot, const OutputRequest& request) {
  FakeContainer unused([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  Sandbox sandbox(unused, {}, silent_log());
  const auto output = tools::collect_output(sandbox, snapshot, request, {});
  REQUIRE(output);
  CHECK(unused.prepared() == 0);  // output in the snapshot is not requested again
  return *output;
}

OutputRequest at_most(std::size_t bytes) {
  OutputRequest request;
  request.max_bytes = bytes;
  request.excerpt = bytes;
  request.max_lines = 0;
  return request;
}

OutputRequest since(const Cursor& cursor, std::size_t max_bytes = 30'000) {
  OutputRequest request = at_most(max_bytes);
  request.since = cursor;
  return request;
}

OutputRequest last_lines(std::size_t lines, std::size_t max_bytes = 30'000) {
  OutputRequest request = at_most(max_bytes);
  request.tail_lines = lines;
  return request;
}

/// Text without the remark. There must be exactly one.
std::string without_remark(const ShownStream& shown) {
  const std::size_t begin = shown.text.find('[');
  const std::size_t end = shown.text.find("]\n", begin);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  CHECK(shown.text.find('[', end) == std::string::npos);
  return shown.text.substr(0, begin) + shown.text.substr(end + 2);
}

/// The stream as far as the fields for programs describe it. Bytes that are not shown are '?'.
std::string rebuilt(const ShownStream& shown) {
  std::string stream(shown.from, '?');
  std::size_t at = 0;
  std::uint64_t left_out = 0;
  for (const tools::Gap& gap : shown.gaps) {
    stream += shown.content.substr(at, gap.at - at);
    CHECK(stream.size() == gap.from);
    CHECK(gap.not_stored <= gap.to - gap.from);
    stream.append(gap.to - gap.from, '?');
    left_out += gap.to - gap.from;
    at = gap.at;
  }
  CHECK(left_out == shown.left_out);
  return stream + shown.content.substr(at);
}

/// Checks that the fields for programs describe the stream `out`, byte for byte.
void check_rebuilt(const ShownStream& shown, const std::string& out) {
  std::string stream = rebuilt(shown);
  REQUIRE(stream.size() == out.size());
  for (std::size_t i = 0; i < stream.size(); ++i) {
    stream[i] = stream[i] == '?' ? out[i] : stream[i];
  }
  CHECK(stream == out);
}

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) {
    text += std::to_string(i) + "\n";
  }
  return text;
}

/// A container whose one process has written `out`, of which the spool keeps [0, head_end) and [tail_start, total).
class Spool {
 public:
  explicit Spool(std::string out) : Spool(out, out.size(), out.size()) {}
  Spool(std::string out, std::uint64_t head_end, std::uint64_t tail_start)
      : m_out(std::move(out)),
        m_stream{m_out.size(), head_end, tail_start},
        m_container([this](FakeAgent& agent, const wire::Frame& request) { answer_read(agent, request); }),
        m_sandbox(m_container, {}, silent_log()) {
    snapshot.state.id = k_sample_process;
    snapshot.state.phase = wire::Phase::closed;
    snapshot.state.out = m_stream;
  }

  Result<ShownOutput> try_collect(const OutputRequest& request) {
    return tools::collect_output(m_sandbox, snapshot, request, {});
  }
  ShownStream collect(const OutputRequest& request) {
    const auto output = try_collect(request);
    REQUIRE(output);
    CHECK(output->err.text.empty());
    return output->out;
  }
  /// From now on the spool holds less than the snapshot says, because the process has written more.
  void lose_until(std::uint64_t tail_start) { m_stream.tail_start = tail_start; }
  void limit_reads(std::size_t max) { m_most_per_read = max; }
  [[nodiscard]] const std::string& out() const { return m_out; }

  Snapshot snapshot;

 private:
  void answer_read(FakeAgent& agent, const wire::Frame& request) const {
    const json& head = request.head;
    CHECK(head.at("op") == "read");
    CHECK(head.at("process") == k_sample_process);
    CHECK(head.at("stream") == "out");
    std::uint64_t from = head.at("offset");
    if (from >= m_stream.head_end && from < m_stream.tail_start) {
      from = m_stream.tail_start;
    }
    const std::uint64_t piece_end = from < m_stream.head_end ? m_stream.head_end : m_stream.total;
    const std::uint64_t most = std::min({head.at("max").get<std::uint64_t>(), piece_end - from, m_most_per_read});
    agent.answer(request, {{"offset", from}, {"stream", {m_stream.total, m_stream.head_end, m_stream.tail_start}}},
                 m_out.substr(from, most));
  }

  std::string m_out;
  wire::StreamState m_stream;
  std::uint64_t m_most_per_read = 262'144;
  FakeContainer m_container;
  Sandbox m_sandbox;
};

}  // namespace

TEST_CASE("output: a cursor is two numbers, and its text can be parsed") {
  for (const Cursor& cursor : {Cursor{0, 0}, Cursor{123, 0}, Cursor{7, wire::k_max_stream_bytes}}) {
    const auto parsed = Cursor::parse(cursor.text());
    REQUIRE(parsed);
    CHECK(parsed->out == cursor.out);
    CHECK(parsed->err == cursor.err);
  }
  CHECK(Cursor{12, 3}.text() == "12:3");
  for (const std::string text :
       {"", ":", "1:", ":1", "1:2:3", "1:2 ", " 1:2", "-1:2", "1:-2", "a:b", "1.0:2", "18446744073709551616:0",
        "18446744073709551615:0", "0:1152921504606846977", "0x1:0"}) {
    CAPTURE(text);
    CHECK_FALSE(Cursor::parse(text));
  }
}

TEST_CASE("output: short output is shown whole") {
  const ShownOutput output = collect(carried("hello\n", "oops\n"), {});
  CHECK(output.out.text == "hello\n");
  CHECK(output.out.total == 6);
  CHECK(output.out.left_out == 0);
  CHECK(output.out.not_kept == 0);
  CHECK(output.out.replaced == 0);
  CHECK(output.err.text == "oops\n");
  CHECK(output.cursor().text() == "6:5");
}

TEST_CASE("output: without output the text is empty") {
  const ShownOutput output = collect(carried(""), {});
  CHECK(output.out.text.empty());
  CHECK(output.err.text.empty());
  CHECK(output.cursor().text() == "0:0");
}

TEST_CASE("output: the limit itself is shown whole, one byte more is cut") {
  CHECK(collect(carried(std::string(1000, 'x')), at_most(1000)).out.text == std::string(1000, 'x'));
  CHECK(collect(carried(std::string(1001, 'x')), at_most(1000)).out.left_out > 0);
}

TEST_CASE("output: long output is cut in the middle with an exact count") {
  const std::string out = numbered_lines(1000);
  const ShownStream shown = collect(carried(out), at_most(500)).out;
  const std::string kept = without_remark(shown);
  CHECK(kept.size() + shown.left_out >= out.size());
  CHECK(kept.size() <= 501);  // and a newline before the remark
  CHECK(shown.text.starts_with("1\n2\n3\n"));
  CHECK(shown.text.ends_with("\n999\n1000\n"));
  CHECK(shown.total == out.size());
  CHECK(shown.next == out.size());
  CHECK(shown.not_kept == 0);
  CHECK(shown.text.find(std::to_string(shown.left_out) + " bytes of stdout left out]") != std::string::npos);

  REQUIRE(shown.rest);
  const ShownStream rest = collect(carried(out), since({*shown.rest, 0})).out;
  CHECK(rest.text == out.substr(*shown.rest));
  CHECK(shown.text.starts_with(out.substr(0, *shown.rest)));
}

TEST_CASE("output: the counts of a cut are exact") {
  for (const std::size_t size : {1001U, 1002U, 1500U, 5000U, 60'000U}) {
    CAPTURE(size);
    const ShownStream shown = collect(carried(std::string(size, 'x')), at_most(1000)).out;
    const auto shown_bytes = std::count(shown.text.begin(), shown.text.end(), 'x');
    CHECK(static_cast<std::uint64_t>(shown_bytes) + shown.left_out == size);
    CHECK(shown_bytes == 1000);
  }
}

TEST_CASE("output: a cut never splits a character") {
  std::string out;
  for (int i = 0; i < 300; ++i) {
    out += "aä€😀";
  }
  for (std::size_t limit = 100; limit < 140; ++limit) {
    CAPTURE(limit);
    const ShownStream shown = collect(carried(out), at_most(limit)).out;
    CHECK(shown.replaced == 0);
    CHECK(to_valid_utf8(shown.text).replaced_bytes == 0);
    CHECK(shown.text.find("\xEF\xBF\xBD") == std::string::npos);
    const std::string kept = without_remark(shown);
    const auto added_newline = std::count(kept.begin(), kept.end(), '\n');
    CHECK(kept.size() - static_cast<std::size_t>(added_newline) + shown.left_out == out.size());
  }
}

TEST_CASE("output: bytes that are not UTF-8 are replaced and counted") {
  const ShownOutput output = collect(carried("a\xff\xfe"
                                             "b",
                                             "\x80"),
                                     {});
  CHECK(output.out.text ==
        "a\xEF\xBF\xBD\xEF\xBF\xBD"
        "b");
  CHECK(output.out.replaced == 2);
  CHECK(output.err.replaced == 1);
}

TEST_CASE("output: colours and overwritten lines are removed, except with raw") {
  const std::string out = "\x1b[31mred\x1b[0m\n10%\r100%\n";
  CHECK(collect(carried(out), {}).out.text == "red\n100%\n");
  OutputRequest raw;
  raw.raw = true;
  CHECK(collect(carried(out), raw).out.text == out);
}

TEST_CASE("output: a quarter is reserved for stderr, the rest is shared") {
  const auto shown_bytes = [](std::size_t out_size, std::size_t err_size) {
    const ShownOutput output = collect(carried(std::string(out_size, 'x'), std::string(err_size, 'x')), at_most(1000));
    const auto count = [](const ShownStream& stream) {
      return static_cast<int>(std::count(stream.text.begin(), stream.text.end(), 'x'));
    };
    return std::pair(count(output.out), count(output.err));
  };
  CHECK(shown_bytes(5000, 5000) == std::pair(750, 250));
  CHECK(shown_bytes(5000, 100) == std::pair(900, 100));
  CHECK(shown_bytes(5000, 0) == std::pair(1000, 0));
  CHECK(shown_bytes(100, 5000) == std::pair(100, 900));
  CHECK(shown_bytes(0, 5000) == std::pair(0, 1000));
  CHECK(shown_bytes(500, 500) == std::pair(500, 500));
}

TEST_CASE("output: the remark in stderr names stderr") {
  const ShownStream shown = collect(carried("", std::string(1000, 'x')), at_most(100)).err;
  CHECK(shown.text.find("bytes of stderr left out]") != std::string::npos);
  CHECK(shown.rest == 33);
}

TEST_CASE("output: since shows both streams from the cursor on") {
  const ShownOutput output = collect(carried("hello world", "oh no"), since({6, 3}));
  CHECK(output.out.text == "world");
  CHECK(output.err.text == "no");
  CHECK(output.out.left_out == 0);
  CHECK(output.cursor().text() == "11:5");
  const ShownOutput nothing_new = collect(carried("hello world", "oh no"), since(output.cursor()));
  CHECK(nothing_new.out.text.empty());
  CHECK(nothing_new.err.text.empty());
  CHECK(nothing_new.cursor().text() == "11:5");
}

TEST_CASE("output: a cursor beyond the end counts as the end") {
  const ShownOutput output = collect(carried("abc"), since({18446744073709551615ULL, 5}));
  CHECK(output.out.text.empty());
  CHECK(output.out.left_out == 0);
  CHECK(output.cursor().text() == "3:0");
}

TEST_CASE("output: pages from cursor to cursor show each character once") {
  std::string out;
  for (int i = 0; i < 200; ++i) {
    out += "aä€😀" + std::to_string(i) + "\n";
  }
  for (std::size_t limit = 100; limit < 110; ++limit) {
    CAPTURE(limit);
    std::string read;
    Cursor cursor;
    for (int rounds = 0; cursor.out < out.size(); ++rounds) {
      REQUIRE(rounds < 100);
      const ShownStream shown = collect(carried(out), since(cursor, limit)).out;
      CHECK(shown.replaced == 0);
      CHECK(shown.left_out == out.size() - shown.next);
      REQUIRE(shown.next > cursor.out);
      read += shown.next < out.size() ? shown.text.substr(0, shown.next - cursor.out) : shown.text;
      if (shown.next < out.size()) {
        CHECK(shown.text.find(std::to_string(shown.left_out) + " more bytes of stdout]") != std::string::npos);
      }
      cursor.out = shown.next;
    }
    CHECK(read == out);
  }
}

TEST_CASE("output: an incomplete character of a running process is held back") {
  Snapshot snapshot = carried("abc\xE2\x82");
  snapshot.state.phase = wire::Phase::running;
  for (const OutputRequest& request : {OutputRequest{}, since({0, 0}), last_lines(5)}) {
    const ShownStream running = collect(snapshot, request).out;
    CHECK(running.text == "abc");
    CHECK(running.replaced == 0);
    CHECK(running.next == 3);
  }

  const ShownStream ended = collect(carried("abc\xE2\x82"), since({0, 0})).out;
  CHECK(ended.replaced == 2);
  CHECK(ended.next == 5);
}

TEST_CASE("output: last lines are counted with or without a final newline") {
  CHECK(collect(carried("a\nb\nc\n"), last_lines(1)).out.text == "c\n");
  CHECK(collect(carried("a\nb\nc\n"), last_lines(2)).out.text == "b\nc\n");
  CHECK(collect(carried("a\nb\nc"), last_lines(2)).out.text == "b\nc");
  CHECK(collect(carried("a\nb\nc\n"), last_lines(3)).out.text == "a\nb\nc\n");
  CHECK(collect(carried("a\nb\nc\n"), last_lines(100)).out.text == "a\nb\nc\n");
  CHECK(collect(carried("a\n\n\n"), last_lines(2)).out.text == "\n\n");
  CHECK(collect(carried(""), last_lines(5)).out.text == "");
}

TEST_CASE("output: with last lines the count and the cursor are exact") {
  const ShownOutput output = collect(carried("12345\n678\n", "err\n"), last_lines(1));
  CHECK(output.out.text == "678\n");
  CHECK(output.out.left_out == 6);
  CHECK(output.err.text == "err\n");
  CHECK(output.err.left_out == 0);
  CHECK(output.cursor().text() == "10:4");
}

TEST_CASE("output: last lines that are too long begin at a character") {
  const std::string out = "first\n" + std::string(1000, 'x') + "\n";
  const ShownStream shown = collect(carried(out), last_lines(1, 100)).out;
  CHECK(shown.text ==
        "[stdout begins 907 bytes before this; raise maxOutput for more]\n" + std::string(99, 'x') + "\n");
  CHECK(shown.left_out == out.size() - 100);
  std::string euros;
  for (int i = 0; i < 100; ++i) {
    euros += "€";
  }
  for (std::size_t max = 100; max < 103; ++max) {
    const ShownStream cut = collect(carried(euros + "x"), last_lines(1, max)).out;
    CHECK(cut.replaced == 0);
    CHECK(cut.text.starts_with("[stdout begins"));
  }
}

TEST_CASE("output: long output is read from the container") {
  Spool spool(numbered_lines(20'000));
  const ShownStream whole = spool.collect(at_most(400'000));
  CHECK(whole.text == spool.out());
  const ShownStream cut = spool.collect(at_most(1000));
  CHECK(cut.text.starts_with("1\n2\n"));
  CHECK(cut.text.ends_with("\n19999\n20000\n"));
  CHECK(spool.collect(last_lines(2)).text == "19999\n20000\n");
  CHECK(spool.collect(since({spool.out().size() - 6, 0})).text == "20000\n");
}

TEST_CASE("output: short reads are continued") {
  Spool spool(numbered_lines(2000));
  spool.limit_reads(333);
  CHECK(spool.collect(at_most(30'000)).text == spool.out());
}

TEST_CASE("output: bytes that are not stored are counted exactly") {
  const std::string out = std::string(1000, 'h') + std::string(5000, '-') + std::string(1000, 't');
  Spool spool(out, 1000, 6000);

  const ShownStream wide = spool.collect(at_most(10'000));
  CHECK(without_remark(wide) == std::string(1000, 'h') + "\n" + std::string(1000, 't'));
  CHECK(wide.left_out == 5000);
  CHECK(wide.not_kept == 5000);
  CHECK(wide.text.find("[5000 bytes of stdout left out, not stored]") != std::string::npos);

  const ShownStream narrow = spool.collect(at_most(100));
  CHECK(narrow.left_out == 6900);
  CHECK(narrow.not_kept == 5000);
  CHECK(narrow.text.find("[6900 bytes of stdout left out, 5000 of them not stored]") != std::string::npos);
  CHECK(narrow.rest == 33);
}

TEST_CASE("output: reading on skips bytes that are not stored") {
  const std::string out = std::string(1000, 'h') + std::string(5000, '-') + std::string(1000, 't');
  Spool spool(out, 1000, 6000);
  const ShownStream head = spool.collect(since({500, 0}));
  CHECK(head.text == std::string(500, 'h') + "\n[6000 more bytes of stdout]\n");
  CHECK(head.next == 1000);
  CHECK(head.left_out == 6000);

  const ShownStream tail = spool.collect(since({head.next, 0}));
  CHECK(tail.text == "[5000 bytes of stdout (1000–6000) are not stored]\n" + std::string(1000, 't'));
  CHECK(tail.not_kept == 5000);
  CHECK(tail.left_out == 5000);
  CHECK(tail.next == 7000);

  const ShownStream inside = spool.collect(since({3000, 0}));
  CHECK(inside.not_kept == 3000);
  CHECK(inside.next == 7000);
}

TEST_CASE("output: last lines are taken from the stored tail") {
  Spool spool("head\n" + std::string(100, '-') + "tail one\ntail two\n", 5, 105);
  CHECK(spool.collect(last_lines(1)).text == "tail two\n");
  const ShownStream all = spool.collect(last_lines(100));
  CHECK(all.text == "tail one\ntail two\n");
  CHECK(all.left_out == 105);
  CHECK(all.not_kept == 100);
}

TEST_CASE("output: bytes that are overwritten during a read are reported") {
  const std::string out = std::string(1000, 'h') + std::string(5000, '-') + std::string(1000, 't');
  Spool spool(out, 1000, 6000);
  spool.lose_until(6400);
  const ShownStream shown = spool.collect(since({6000, 0}));
  CHECK(shown.text == "[400 bytes of stdout (6000–6400) are not stored]\n" + std::string(600, 't'));
  CHECK(shown.not_kept == 400);
  CHECK(shown.next == 7000);

  const ShownStream cut = spool.collect(at_most(10'000));
  CHECK(cut.left_out == 5400);
  CHECK(cut.not_kept == 5400);
  CHECK(without_remark(cut) == std::string(1000, 'h') + "\n" + std::string(600, 't'));
}

TEST_CASE("output: a failed read is reported to the caller") {
  FakeContainer container([](FakeAgent& agent, const wire::Frame& request) { agent.refuse(request, "spool_damaged"); });
  Sandbox sandbox(container, {}, silent_log());
  Snapshot snapshot;
  snapshot.state.id = k_sample_process;
  snapshot.state.out = {10, 10, 10};
  for (const OutputRequest& request : {OutputRequest{}, since({0, 0}), last_lines(1)}) {
    const auto output = tools::collect_output(sandbox, snapshot, request, {});
    REQUIRE_FALSE(output);
    CHECK(output.error().code == ErrorCode::spool_damaged);
  }
}

TEST_CASE("output: reading on passes a character that a gap has split") {
  const std::string out = std::string(10, 'h') + "\xE2" + std::string(50, '-') + "tail";
  Spool spool(out, 11, 61);
  Cursor cursor{0, 0};
  for (int i = 0; i < 5; ++i) {
    const auto output = spool.try_collect(since(cursor));
    REQUIRE(output);
    cursor = output->cursor();
  }
  CHECK(cursor.out == out.size());
}

TEST_CASE("output: by default 9,500 bytes are shown whole, more as an excerpt") {
  const std::string fits(k_default_max_output, 'x');
  CHECK(collect(carried(fits), {}).out.text == fits);
  const ShownStream shown = collect(carried(numbered_lines(2000)), {}).out;  // 8,893 bytes
  CHECK(shown.text.size() < k_default_excerpt + 50);
  CHECK(shown.text.starts_with("1\n2\n"));
  CHECK(shown.text.ends_with("\n1999\n2000\n"));
  CHECK(collect(carried(numbered_lines(1500)), {}).out.text == numbered_lines(1500));
  CHECK(collect(carried(std::string(k_default_max_output + 1, 'x')), {}).out.left_out > 7'000);
}

TEST_CASE("output: an excerpt is cut between lines") {
  const ShownStream shown = collect(carried(numbered_lines(30'000)), {}).out;
  const std::size_t note = shown.text.find('[');
  REQUIRE(note != std::string::npos);
  CHECK(shown.text[note - 1] == '\n');
  REQUIRE(shown.rest);
  CHECK(numbered_lines(30'000)[*shown.rest - 1] == '\n');
}

TEST_CASE("output: a page after a cursor has at most 1,500 lines by default") {
  OutputRequest request;
  request.since = Cursor{0, 0};
  const ShownStream shown = collect(carried(numbered_lines(2000)), request).out;
  CHECK(shown.text == numbered_lines(1500) + "[2500 more bytes of stdout]\n");
  CHECK(shown.rest == numbered_lines(1500).size());
  request.since = Cursor{shown.next, 0};
  const ShownStream next = collect(carried(numbered_lines(2000)), request).out;
  CHECK(next.text.starts_with("1501\n"));
  CHECK_FALSE(next.rest);
}

TEST_CASE("output: a cursor may be a number of bytes of stdout") {
  REQUIRE(Cursor::parse("12"));
  CHECK(Cursor::parse("12")->out == 12);
  CHECK(Cursor::parse("12")->err == 0);
  for (const char* bad : {"", ":", "1:", ":1", "-1", "1:2:3", "x"}) {
    CHECK_FALSE(Cursor::parse(bad));
  }
}

TEST_CASE("output: both streams are one text in the order of writing") {
  Snapshot snapshot = carried("a\nc\n", "b\n");
  CHECK(collect(snapshot, {}).text == "a\nc\n[stderr]\nb\n");
  snapshot.order = {{2, 2}};
  const ShownOutput output = collect(snapshot, {});
  CHECK(output.text == "a\n[stderr]\nb\n[stdout]\nc\n");
  CHECK(output.out.text == "a\nc\n");
  CHECK(output.err.text == "b\n");
  CHECK(collect(snapshot, since({2, 0})).text == "[stderr]\nb\n[stdout]\nc\n");
  CHECK(collect(carried("a\n"), {}).text == "a\n");
  CHECK(collect(carried("", "b\n"), {}).text == "[stderr]\nb\n");
}

TEST_CASE("output: stream marks do not exceed the limit of the text") {
  std::string out;
  std::string err;
  wire::WriteOrder order;
  for (int i = 100; i < 200; ++i) {
    out += "o" + std::to_string(i) + "\n";
    err += "e" + std::to_string(i) + "\n";
    order.push_back({out.size(), err.size()});
  }
  Snapshot snapshot = carried(out, err);
  snapshot.order = order;
  const std::string all = collect(snapshot, at_most(10'000)).text;
  CHECK(all.starts_with("o100\n[stderr]\ne100\n[stdout]\no101\n"));
  CHECK(all.size() == 1000 + 199 * 9);
  const std::string fewer = collect(snapshot, at_most(1'500)).text;
  CHECK(fewer.size() <= 1'500);
  CHECK(fewer.starts_with("o100\no101\n"));
  CHECK(std::count(fewer.begin(), fewer.end(), '[') > 10);
  for (const char stream : {'o', 'e'}) {
    CHECK(std::count(fewer.begin(), fewer.end(), stream) >= 100);
  }
  CHECK(collect(snapshot, at_most(1'000)).text.size() <= 1'100);
}

TEST_CASE("output: bytes that are not UTF-8 are counted once") {
  const ShownOutput output = collect(carried("a\xff\n", "b\xfe\n"), {});
  CHECK(output.text == "a\xEF\xBF\xBD\n[stderr]\nb\xEF\xBF\xBD\n");
  CHECK(output.out.replaced == 1);
  CHECK(output.err.replaced == 1);
}

TEST_CASE("output: bytes that were shown before are left out") {
  const auto after = [](const Cursor& shown, std::size_t max_bytes) {
    OutputRequest request = at_most(max_bytes);
    request.shown = shown;
    return request;
  };
  const Snapshot snapshot = carried("one\ntwo\n", "oops\n");
  const ShownOutput news = collect(snapshot, after({4, 0}, 1000));
  CHECK(news.text == "two\n[stderr]\noops\n");
  CHECK(news.cursor().text() == "8:5");
  CHECK(news.out.left_out == 0);
  CHECK(collect(snapshot, after({8, 5}, 1000)).text.empty());
  CHECK(collect(snapshot, after({100, 100}, 1000)).text.empty());

  const std::string out = numbered_lines(2000);
  const std::uint64_t shown = out.find("1000\n");
  const ShownStream excerpt = collect(carried(out), after({shown, 0}, 500)).out;
  CHECK(excerpt.text.starts_with("1000\n1001\n"));
  CHECK(excerpt.text.ends_with("\n1999\n2000\n"));
  CHECK(excerpt.next == out.size());
  REQUIRE(excerpt.rest);
  CHECK(collect(carried(out), since({*excerpt.rest, 0})).out.text ==
        out.substr(*excerpt.rest));  // from the first byte that was left out
  CHECK(without_remark(excerpt).size() + excerpt.left_out == out.size() - shown);
}

TEST_CASE("output: a client that was shown the start gets exact gaps") {
  const std::string out = std::string(1000, 'h') + std::string(5000, '-') + std::string(1000, 't');
  Spool spool(out, 1000, 6000);
  for (const std::uint64_t begin : {500U, 1000U, 3000U}) {
    CAPTURE(begin);
    OutputRequest request = at_most(10'000);
    request.shown = {begin, 0};
    const ShownStream shown = spool.collect(request);
    CHECK(shown.not_kept == 6000 - std::max<std::uint64_t>(begin, 1000));
    CHECK(shown.left_out == shown.not_kept);
    CHECK(shown.text.ends_with("not stored]\n" + std::string(1000, 't')));
    CHECK(std::count(shown.text.begin(), shown.text.end(), 'h') == (begin < 1000 ? 500 : 0));
  }
  OutputRequest request = at_most(10'000);
  request.shown = {6400, 0};
  CHECK(spool.collect(request).text == std::string(600, 't'));
}

TEST_CASE("output: the limits apply to the rendered text") {
  const auto lines = [](const ShownOutput& shown) { return std::count(shown.text.begin(), shown.text.end(), '\n'); };
  const std::string invalid(9'400, '\xff');  // each is shown as U+FFFD, which has 3 bytes
  SUBCASE("bytes that are not UTF-8") {
    const ShownOutput shown = collect(carried(invalid), {});
    CHECK(shown.text.size() <= 9'700);
    CHECK(shown.out.left_out > 0);
    CHECK(shown.rest());
  }
  SUBCASE("bytes that are not UTF-8, read on from a cursor, lose nothing") {
    OutputRequest request;
    std::size_t bytes = 0;
    for (request.since = Cursor{}; request.since->out < invalid.size();) {
      const ShownOutput shown = collect(carried(invalid), request);
      REQUIRE(shown.out.next > request.since->out);
      CHECK(shown.text.size() <= 9'700);
      bytes += shown.bytes();
      request.since = shown.cursor();
    }
    CHECK(bytes == invalid.size());
  }
  SUBCASE("lines of both streams together") {
    const ShownOutput shown = collect(carried(numbered_lines(1400), numbered_lines(1400)), {});
    CHECK(lines(shown) <= 1'508);
    CHECK(shown.rest());
  }
  SUBCASE("lines of both streams, read on from a cursor") {
    OutputRequest request;
    request.since = Cursor{};
    const ShownOutput shown = collect(carried(numbered_lines(1400), numbered_lines(1400)), request);
    CHECK(lines(shown) <= 1'508);
    CHECK(lines(shown) > 500);
  }
  SUBCASE("marks between the streams") {
    Snapshot snapshot = carried(numbered_lines(700), numbered_lines(700));
    std::uint64_t at = 0;
    for (int i = 1; i <= 700; ++i) {
      at += std::to_string(i).size() + 1;
      snapshot.order.push_back({at, at});
    }
    const ShownOutput shown = collect(snapshot, {});
    CHECK(lines(shown) <= 1'508);
    CHECK_FALSE(shown.rest());  // fewer marks suffice
  }
  SUBCASE("a larger maxOutput is a bound too") {
    CHECK(collect(carried(std::string(50'000, '\xff')), at_most(50'000)).text.size() <= 50'200);
    CHECK(collect(carried(std::string(50'000, '\xff')), at_most(200'000)).text.size() == 150'000);
  }
}

TEST_CASE("output: content and gaps describe every kind of part exactly") {
  const std::string out = numbered_lines(3000);
  OutputRequest latest = at_most(500);
  latest.latest = true;
  OutputRequest new_only = at_most(500);
  new_only.shown = {1000, 0};
  for (const OutputRequest& request : {OutputRequest{}, at_most(100'000), at_most(500), since({0, 0}, 500),
                                       since({1234, 0}, 500), last_lines(7), last_lines(500, 700), latest, new_only}) {
    const ShownStream shown = collect(carried(out), request).out;
    CHECK(shown.content.find('[') == std::string::npos);
    check_rebuilt(shown, out);
  }
  const ShownStream middle = collect(carried(out), at_most(500)).out;
  REQUIRE(middle.gaps.size() == 1);
  CHECK(middle.gaps[0].from == *middle.rest);
  CHECK(middle.gaps[0].at == *middle.rest);
  CHECK(middle.content.size() < 500);
  CHECK(collect(carried(out), at_most(100'000)).out.gaps.empty());
}

TEST_CASE("output: gaps count the bytes that are not stored") {
  const std::string out = std::string(1000, 'h') + std::string(5000, '-') + std::string(1000, 't');
  Spool spool(out, 1000, 6000);
  for (const OutputRequest& request :
       {at_most(10'000), at_most(100), since({500, 0}), since({3000, 0}), last_lines(1)}) {
    check_rebuilt(spool.collect(request), out);
  }
  CHECK(spool.collect(at_most(100)).gaps.at(0).not_stored == 5000);
  CHECK(spool.collect(since({500, 0})).gaps.at(0).not_stored == 5000);
  CHECK(spool.collect(since({3000, 0})).gaps.at(0).not_stored == 3000);
  CHECK(spool.collect(since({6000, 0})).gaps.empty());
  spool.lose_until(6400);
  const ShownStream lost = spool.collect(since({6000, 0}));
  check_rebuilt(lost, out);
  CHECK(lost.gaps.at(0).not_stored == 400);
}

TEST_CASE("output: content has no folded lines, and escapes only with raw") {
  const std::string out = "\x1b[31mred\x1b[0m\n" + std::string(20, '\n') + "a\xff\n";
  const ShownStream plain = collect(carried(out), {}).out;
  CHECK(plain.text.find("more times]") != std::string::npos);
  CHECK(plain.content == "red\n" + std::string(20, '\n') + "a\xEF\xBF\xBD\n");
  CHECK(plain.replaced == 1);
  OutputRequest raw;
  raw.raw = true;
  CHECK(collect(carried(out), raw).out.content == "\x1b[31mred\x1b[0m\n" + std::string(20, '\n') + "a\xEF\xBF\xBD\n");
}
