#include "sandbox/session_track.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "support/repeated.hpp"
#include "wire/side_channel.hpp"

using namespace dockbridge;
using sandbox::CellProgress;
using sandbox::CellStatus;
using sandbox::SessionTrack;

namespace {

/// A stored piece of the side channel.
std::string piece(const std::string& text, std::uint64_t out = 0, std::uint64_t err = 0) {
  wire::SidePieceHeader header;
  header.size = static_cast<std::uint32_t>(text.size());
  header.out = out;
  header.err = err;
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + text;
}

const std::string k_ready = "{\"event\":\"ready\",\"version\":\"3.11.2\",\"executable\":\"/usr/bin/python3\"}\n";

std::string begin(int cell, const std::string& key) {
  return "{\"event\":\"begin\",\"cell\":" + std::to_string(cell) + ",\"key\":\"" + key + "\",\"first\":\"x = 1\"}\n";
}
std::string end(int cell, const std::string& more = "") {
  return "{\"event\":\"end\",\"cell\":" + std::to_string(cell) + ",\"status\":\"ok\",\"seconds\":0.5,\"kept\":true" +
         more + "}\n";
}

}  // namespace

TEST_CASE("session track: a cell begins, shows something and ends") {
  SessionTrack track;
  std::string stream = piece(k_ready);
  track.add(0, stream);
  REQUIRE(track.ready());
  CHECK(track.ready()->version == "3.11.2");
  CHECK(track.last_cell() == 0);
  CHECK_FALSE(track.is_busy());
  CHECK(track.progress_of(1, "k1") == CellProgress::unseen);

  track.add(stream.size(), piece(begin(1, "k1"), 3, 1));
  CHECK(track.is_busy());
  CHECK(track.cell()->first_line == "x = 1");
  CHECK(track.progress_of(1, "k1") == CellProgress::running);
  CHECK(track.progress_of(1, "other") == CellProgress::refused);

  track.add(track.next_offset(),
            piece("{\"event\":\"display\",\"cell\":1,\"data\":{\"text/plain\":\"shown\"}}\n", 5, 1) +
                piece(end(1,
                          ",\"value\":{\"text/plain\":\"42\",\"image/png\":{\"bytes\":10,\"path\":\"/app/x.png\","
                          "\"width\":3,\"height\":4}}"),
                      9, 2));
  CHECK(track.progress_of(1, "k1") == CellProgress::ended);
  const auto& cell = *track.cell();
  REQUIRE(cell.displays.size() == 1);
  CHECK(cell.displays[0].bundle[0].text == "shown");
  CHECK(cell.end->status == CellStatus::ok);
  CHECK(cell.end->seconds == 0.5);
  CHECK(cell.end->is_state_kept);
  CHECK(sandbox::find_part(cell.end->bundle, "text/plain")->text == "42");
  CHECK(sandbox::find_part(cell.end->bundle, "image/png")->file->path == "/app/x.png");
  // Output between cells belongs to the next one.
  CHECK(cell.output_from == wire::Offsets{0, 0});
  CHECK(cell.end->output_before == wire::Offsets{9, 2});
  track.add(track.next_offset(), piece(begin(2, "k2"), 20, 2));
  CHECK(track.cell()->output_from == wire::Offsets{9, 2});
  CHECK(track.progress_of(1, "k1") == CellProgress::earlier);
  CHECK(track.cell_with_key("k1") == 1);
  CHECK(track.cell_with_key("k2") == 2);
  CHECK(track.cell_with_key("k3") == 0);
}

TEST_CASE("session track: events may be split anywhere") {
  const std::string text = k_ready + begin(1, "k") + end(1);
  for (const std::size_t size : {1, 7, 30, 1000}) {
    std::string stream;
    for (std::size_t at = 0; at < text.size(); at += size) {
      stream += piece(text.substr(at, size), at);
    }
    for (const std::size_t read : {1, 5, 64, 100'000}) {
      SessionTrack track;
      for (std::size_t at = 0; at < stream.size(); at += read) {
        track.add(at, std::string_view(stream).substr(at, read));
      }
      CHECK(track.progress_of(1, "k") == CellProgress::ended);
    }
  }
}

TEST_CASE("session track: bytes that were added before are ignored") {
  SessionTrack track;
  const std::string first = piece(k_ready + begin(1, "k"));
  const std::string second = piece(end(1));
  track.add(0, first);
  track.add(0, first + second);
  CHECK(track.next_offset() == first.size() + second.size());
  track.add(0, first + second);
  CHECK(track.progress_of(1, "k") == CellProgress::ended);
}

TEST_CASE("session track: it continues at the next event after a gap") {
  const std::string lost = piece(k_ready + begin(1, "a") + end(1));
  const std::string broken = piece("half of an event, which says side and {\"event\":\n", 4);
  const std::string rest = piece(begin(7, "b"), 50, 5);
  SessionTrack track;
  // The bytes after the gap begin in the middle of a piece.
  track.add(lost.size() + 10, broken.substr(10) + rest);
  CHECK(track.last_cell() == 7);
  CHECK(track.is_busy());
  CHECK(track.is_certain());
  CHECK(track.cell()->output_from == wire::Offsets{50, 5});
  track.add(track.next_offset(), piece(end(7), 60, 5));
  CHECK(track.progress_of(7, "b") == CellProgress::ended);
  CHECK(track.cell()->end->output_before == wire::Offsets{60, 5});
}

TEST_CASE("session track: without the begin of a cell the number is uncertain") {
  SessionTrack track;
  track.add(1000, piece(end(3), 9, 9));
  CHECK_FALSE(track.is_certain());
  CHECK(track.last_cell() == 3);
}

TEST_CASE("session track: a damaged header is skipped") {
  SessionTrack track;
  track.add(0, piece(k_ready) + "garbage" + piece(begin(1, "k")));
  CHECK(track.last_cell() == 1);
}

TEST_CASE("session track: malformed events are ignored") {
  for (const char* line :
       {"not json", "[1]", "{}", "{\"event\":\"end\"}", "{\"event\":\"begin\",\"cell\":-1,\"key\":\"k\"}",
        "{\"event\":\"begin\",\"cell\":\"1\",\"key\":\"k\"}", "{\"event\":\"begin\",\"cell\":1,\"key\":7}",
        "{\"event\":\"nonsense\",\"cell\":1}", "{\"event\":\"display\",\"cell\":1,\"data\":[]}",
        "{\"event\":\"display\",\"cell\":1,\"data\":{\"image/png\":7}}",
        "{\"event\":\"display\",\"cell\":1,\"data\":{\"image/png\":{\"path\":\"relative\"}}}",
        "{\"event\":\"end\",\"cell\":1,\"status\":\"ok\",\"seconds\":-1}",
        "{\"event\":\"end\",\"cell\":1,\"status\":\"other\"}", "\xff\xfe",
        "{\"event\":\"begin\",\"cell\":1,\"key\":\"\xff\"}"}) {
    CAPTURE(line);
    SessionTrack track;
    track.add(0, piece(k_ready + line + "\n"));
    CHECK(track.ready());
    CHECK(track.last_cell() == 0);
  }
}

TEST_CASE("session track: a cell that shows very much does not use up memory") {
  SessionTrack track;
  std::uint64_t at = 0;
  const auto add = [&](const std::string& text) {
    for (std::size_t from = 0; from < text.size(); from += wire::k_max_side_piece) {
      const std::string bytes = piece(text.substr(from, wire::k_max_side_piece));
      track.add(at, bytes);
      at += bytes.size();
    }
  };
  add(begin(1, "k"));
  for (int i = 0; i < 100; ++i) {
    add("{\"event\":\"display\",\"cell\":1,\"data\":{\"text/html\":\"" + test::repeated("0123456789", 10'000) +
        "\"}}\n");
  }
  CHECK(track.cell()->displays.size() <= 64);
  CHECK(track.cell()->displays.size() + track.cell()->displays_left_out == 100);
}

TEST_CASE("session track: a request that got a number too late is refused") {
  SessionTrack track;
  track.add(0, piece(k_ready + begin(1, "a") + end(1)));
  track.add(track.next_offset(), piece("{\"event\":\"stale\",\"cell\":1,\"key\":\"b\",\"last\":1}\n", 0));
  CHECK(track.progress_of(1, "b") == CellProgress::refused);
  CHECK(track.progress_of(2, "b") == CellProgress::refused);
  CHECK(track.progress_of(2, "c") == CellProgress::unseen);
}

TEST_CASE("session track: answers are found by the number of their request") {
  SessionTrack track;
  track.add(0,
            piece("{\"event\":\"variables\",\"request\":5,\"total\":3,\"variables\":[{\"name\":\"a\",\"type\":"
                  "\"numpy.ndarray\",\"shape\":[2,3],\"bytes\":48}]}\n"
                  "{\"event\":\"history\",\"request\":6,\"dropped\":1,\"cells\":[{\"cell\":2,\"code\":\"1+1\"}]}\n"));
  CHECK_FALSE(track.take_answer(7));
  const auto variables = track.take_answer(5);
  REQUIRE(variables);
  CHECK(variables->variables[0].shape == std::vector<std::uint64_t>{2, 3});
  CHECK(variables->left_out == 2);
  CHECK_FALSE(track.take_answer(5));
  const auto history = track.take_answer(6);
  REQUIRE(history);
  CHECK(history->history[0].code == "1+1");
}

TEST_CASE("session track: the reasons of an end are known") {
  SessionTrack idle;
  idle.add(0, piece(k_ready + "{\"event\":\"idle\"}\n"));
  CHECK(idle.has_reached_idle_limit());
  SessionTrack old;
  old.add(0, piece("{\"event\":\"too_old\",\"version\":\"2.7.18\"}\n"));
  REQUIRE(old.too_old());
  CHECK(old.too_old()->version == "2.7.18");
}

TEST_CASE("session track: a shell reports the exit status of each command") {
  SessionTrack track;
  track.add(0, piece("{\"event\":\"ready\"}\n" + begin(1, "k") +
                     "{\"event\":\"end\",\"cell\":1,\"status\":\"ok\",\"exit\":3}\n"));
  CHECK(track.cell()->end->exit_status == 3);
}
