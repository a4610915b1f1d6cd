#include "util/terminal_transcript.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dockbridge;

namespace {

TerminalTranscript transcript(std::string_view printed, std::string_view before = "", int columns = 20, int rows = 6) {
  return transcribe({before, printed, columns, rows, before.empty()});
}

std::string lines(std::string_view printed, std::string_view before = "") {
  const auto result = transcript(printed, before);
  CHECK(result.is_complete);
  return result.text;
}

}  // namespace

TEST_CASE("transcript: lines are the same as on the terminal") {
  CHECK(lines("one\r\ntwo\r\n") == "one\ntwo\n");
  CHECK(lines("\x1b[31mred\x1b[m\r\n> ") == "red\n> ");
  CHECK(lines(" 10%\r 50%\r100%\r\ndone\r\n") == "100%\ndone\n");
  CHECK(lines("abc\b\b\x1b[Kx\r\n") == "ax\n");
  CHECK(lines("wrold\x1b[4Dor\r\n") == "world\n");
  CHECK(lines("hello\x1b[3D\x1b[P\x1b[2@--\r\n") == "he--lo\n");
  CHECK(lines("w\xc3\xb6rld \xf0\x9f\x98\x80\r\n") == "w\xc3\xb6rld \xf0\x9f\x98\x80\n");
  CHECK(lines("a\tb\r\n") == "a\tb\n");
  CHECK(lines("two  \r\n") == "two  \n");
  CHECK(lines("filled              \r\n> ") == "filled\n> ");
}

TEST_CASE("transcript: the continued line is complete") {
  CHECK(lines("break main\r\n\x1b[?2004l\rBreakpoint 1\r\n(gdb) ", "(gdb) ") ==
        "(gdb) break main\nBreakpoint 1\n(gdb) ");
  // A history entry replaces the typed text.
  CHECK(lines("abc\b\b\b\x1b[Kx = 1\r\n>>> ", ">>> ") == ">>> x = 1\n>>> ");
  // A partly erased line shows its rest.
  CHECK(lines("\b\b\b\x1b[K", "$ abc def") == "$ abc ");
  CHECK(lines("\b\b\b\x1b[2P", "$ abc def") == "$ abc f");
  CHECK(lines("\x1b[K", "$ abc def").empty());
  CHECK(lines("\r\x1b[K", "loading").empty());
}

TEST_CASE("transcript: a wrapped line is one line") {
  const std::string forty = "0123456789012345678901234567890123456789";
  CHECK(lines(forty + "\r\n") == forty + "\n");
  // A line editor makes the terminal wrap with a blank and a carriage return.
  CHECK(lines("0123456789012345 \r6789\r\nok\r\n>>> ", ">>> ") == ">>> 01234567890123456789\nok\n>>> ");
}

TEST_CASE("transcript: redrawn lines appear once") {
  CHECK(lines("a: 1\r\nb: 1\r\n\x1b[2Aa: 2\x1b[K\r\nb: 2\x1b[K\r\ndone\r\n") == "a: 2\nb: 2\ndone\n");
  // prompt_toolkit reserves rows below its prompt.
  CHECK(lines("\x1b[JIn [1]: \r\r\n\r\r\n\r\r\n \b\x1b[3A\x1b[8C") == "In [1]: ");
}

TEST_CASE("transcript: the alternate screen is left out") {
  CHECK(lines("$ vim\r\n\x1b[?1049h\x1b[2J\x1b[5;1Htext\x1b[?1049l\x1b[?25hsaved\r\n") == "$ vim\nsaved\n");
  // The program was started before this piece.
  CHECK(lines("\x1b[5;1H:wq\r\x1b[K\x1b[?1049l\x1b[23;0;0tsaved\r\n$ ", "~") == "saved\n$ ");
}

TEST_CASE("transcript: text placed on the screen is left out") {
  const std::string frame = "\x1b[H12 tasks\x1b[K\r\n1 root\x1b[K\r\n";
  const auto drawn = transcript(frame, "x");
  CHECK_FALSE(drawn.is_complete);
  CHECK(drawn.text.find("tasks") == std::string::npos);
  // After the last row, lines follow one another again, because the program has ended.
  const auto ended = transcript("\x1b[6;1H\r\n$ ", "x\r\n" + frame);
  CHECK(ended.is_complete);
  CHECK(ended.text.ends_with("\n$ "));
  CHECK(ended.text.find("tasks") == std::string::npos);
  // A progress bar in the last row, as apt draws it.
  const auto apt = transcript(
      "Unpacking a\r\n\x1b"
      "7\x1b[0;5r\x1b"
      "8\x1b[1A\x1b"
      "7\x1b[6;0fProgress: [10%]\x1b"
      "8\nSetting up a\r\n");
  CHECK(apt.text.starts_with("Unpacking a\nSetting up a\n"));
  CHECK(apt.text.find("Progress") == std::string::npos);
}

TEST_CASE("transcript: drawing on a cleared screen lasts until lines scroll") {
  for (const std::string clear : {"\x1b[H\x1b[2J\x1b[3J", "\x1b[2J\x1b[H", "\x1b[H\x1b[J"}) {
    CAPTURE(clear);
    const auto menu = transcript("old\r\n" + clear + "one\r\ntwo\r\n> ", "x");
    CHECK_FALSE(menu.is_complete);
    CHECK(menu.text == "one\ntwo\n> ");
    const auto scrolled = transcript(clear + "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n", "x");
    CHECK(scrolled.is_complete);
    CHECK(scrolled.text == "1\n2\n3\n4\n5\n6\n7\n");
  }
}

TEST_CASE("transcript: finds the prompt in the output before it") {
  const auto result = transcript("6 * 7\r\n\x1b[JOut: 42\r\n", "text\r\nIn: \r\r\n\r\r\n \b\x1b[2A\x1b[4C");
  CHECK(result.prompt == "In: ");
  CHECK(result.text == "In: 6 * 7\nOut: 42\n");
  CHECK(result.is_complete);
}

TEST_CASE("transcript: a change of earlier lines is reported") {
  CHECK_FALSE(transcript("\x1b[2A> second\r\n", "x").is_complete);
  CHECK(transcript("\r\n\x1b[1Ax\r\n", "x").is_complete);
}

TEST_CASE("transcript: hostile output takes bounded time and memory") {
  std::string hostile;
  for (int i = 0; i < 40'000; ++i) {
    hostile += "\x1b[9999Cx\n";
  }
  CHECK(transcript(hostile, "", 500, 500).text.size() < 2'000'000);
  std::string shifting(100'000, 'x');
  for (int i = 0; i < 40'000; ++i) {
    shifting += "\x1b[P\x1b[1G";
  }
  CHECK(transcript(shifting, "", 500, 500).text.size() == 100'000);
}
