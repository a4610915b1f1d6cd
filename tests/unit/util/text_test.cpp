#include "util/text.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace dockbridge;

namespace {

const std::string k_bad = "\xEF\xBF\xBD";  // U+FFFD

std::string times(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

}  // namespace

TEST_CASE("utf-8: valid text is unchanged, at the limits of each length") {
  for (const std::string text : {"", "plain", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                                 "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "aä€😀z"}) {
    CAPTURE(text);
    const ValidText valid = to_valid_utf8(text);
    CHECK(valid.text == text);
    CHECK(valid.replaced_bytes == 0);
  }
  const std::string with_nul("a\0b", 3);
  CHECK(to_valid_utf8(with_nul).text == with_nul);
}

TEST_CASE("utf-8: each invalid byte is replaced and counted") {
  const std::vector<std::pair<std::string, int>> cases = {
      {"\x80", 1},                  // a continuation of nothing
      {"\xBF\xBF", 2},              //
      {"\xFE", 1},                  // never a lead
      {"\xFF\xFF", 2},              //
      {"\xC0\x80", 2},              // NUL, overlong
      {"\xC1\xBF", 2},              // overlong
      {"\xE0\x9F\xBF", 3},          // overlong
      {"\xF0\x8F\xBF\xBF", 4},      // overlong
      {"\xED\xA0\x80", 3},          // the first surrogate
      {"\xED\xBF\xBF", 3},          // the last
      {"\xF4\x90\x80\x80", 4},      // beyond U+10FFFF
      {"\xF5\x80\x80\x80", 4},      //
      {"\xF8\x88\x80\x80\x80", 5},  // five bytes
      {"\xC3", 1},                  // cut off
      {"\xE2\x82", 2},              //
      {"\xF0\x9F\x98", 3},          //
  };
  for (const auto& [bytes, replaced] : cases) {
    CAPTURE(bytes);
    const ValidText valid = to_valid_utf8("<" + bytes + ">");
    CHECK(valid.text == "<" + times(k_bad, replaced) + ">");
    CHECK(valid.replaced_bytes == static_cast<std::size_t>(replaced));
  }
}

TEST_CASE("utf-8: an incomplete character does not consume the next one") {
  CHECK(to_valid_utf8("\xE2\x82ä").text == k_bad + k_bad + "ä");
  CHECK(to_valid_utf8("\xF0\x9F\x98x").text == k_bad + k_bad + k_bad + "x");
}

TEST_CASE("utf-8: bytes of an incomplete character at the end are counted") {
  CHECK(incomplete_utf8_tail("") == 0);
  CHECK(incomplete_utf8_tail("abc") == 0);
  CHECK(incomplete_utf8_tail("ä") == 0);
  CHECK(incomplete_utf8_tail("😀") == 0);
  const std::string text = "aä€😀";  // 1, 2, 3 and 4 bytes
  const std::vector<std::size_t> expected = {0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0};
  for (std::size_t length = 0; length <= text.size(); ++length) {
    CAPTURE(length);
    CHECK(incomplete_utf8_tail(std::string_view(text).substr(0, length)) == expected[length]);
  }
}

TEST_CASE("utf-8: invalid bytes at the end are not an incomplete character") {
  CHECK(incomplete_utf8_tail("a\x80") == 0);
  CHECK(incomplete_utf8_tail("a\x80\x80\x80\x80") == 0);
  CHECK(incomplete_utf8_tail("a\xFF") == 0);
  CHECK(incomplete_utf8_tail("a\xC0") == 0);
  CHECK(incomplete_utf8_tail("ä\x80") == 0);
}

TEST_CASE("utf-8: bytes of a continued character at the start are counted") {
  const std::string text = "😀ä";
  const std::vector<std::size_t> expected = {0, 3, 2, 1, 0, 1, 0};
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CAPTURE(cut);
    CHECK(partial_utf8_start(std::string_view(text).substr(cut)) == expected[cut]);
  }
  CHECK(partial_utf8_start("") == 0);
  CHECK(partial_utf8_start("\x80\x80\x80\x80\x80") == 3);  // no character is longer
}

TEST_CASE("utf-8: both parts of a split text are valid without partial characters") {
  const std::string text = times("aä€😀", 3);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CAPTURE(cut);
    std::string_view head = std::string_view(text).substr(0, cut);
    std::string_view tail = std::string_view(text).substr(cut);
    head.remove_suffix(incomplete_utf8_tail(head));
    tail.remove_prefix(partial_utf8_start(tail));
    CHECK(to_valid_utf8(head).replaced_bytes == 0);
    CHECK(to_valid_utf8(tail).replaced_bytes == 0);
  }
}

TEST_CASE("terminal text: text without escapes is unchanged") {
  for (const std::string text : {"", "\n", "one\ntwo\n\nthree", "\ttab", "a\a", "漢字 😀\n", "no newline"}) {
    CHECK(plain_terminal_text(text) == text);
  }
  const std::string binary("a\0b\x7f", 4);
  CHECK(plain_terminal_text(binary) == binary);
}

TEST_CASE("terminal text: escape sequences are removed") {
  const std::vector<std::string> sequences = {
      "\x1b[31m",                 // colour
      "\x1b[1;38;5;208m",         //
      "\x1b[0m",                  //
      "\x1b[m",                   //
      "\x1b[?25l",                // hide the cursor
      "\x1b[?1049h",              // other screen
      "\x1b[2J",                  // clear
      "\x1b[10;20H",              // move
      "\x1b[>c",                  // ask for attributes
      "\x1b]0;title\a",           // title, ended by BEL
      "\x1b]0;title\x1b\\",       // title, ended by ST
      "\x1b]8;;http://x/\x1b\\",  // link
      "\x1bPq#0\x1b\\",           // device control
      "\x1b_app\x1b\\",           // application command
      "\x1b^private\x1b\\",       //
      "\x1bXstring\x1b\\",        //
      "\x1b(B",                   // charset
      "\x1b)0",                   //
      "\x1b#8",                   // alignment test
      "\x1b%G",                   // UTF-8
      "\x1b=",                    // keypad
      "\x1b>",                    //
      "\x1b"
      "7",  // save the cursor
      "\x1b"
      "8",  // restore it
      "\x1bM",
  };
  for (const std::string& sequence : sequences) {
    CAPTURE(sequence);
    CHECK(plain_terminal_text("a" + sequence + "b\nc") == "ab\nc");
    CHECK(plain_terminal_text(sequence) == "");
  }
}

TEST_CASE("terminal text: only an incomplete sequence at the end is dropped") {
  for (const std::string rest :
       {"\x1b", "\x1b[", "\x1b[3", "\x1b[38;5", "\x1b]", "\x1b]0;ti", "\x1b]0;title\x1b", "\x1b(", "\x1bP", "\x1b#"}) {
    CAPTURE(rest);
    CHECK(plain_terminal_text("kept\n" + rest) == "kept\n");
  }
}

TEST_CASE("terminal text: a carriage return overwrites the start of the line") {
  CHECK(plain_terminal_text("10%\r50%\r100%\n") == "100%\n");
  CHECK(plain_terminal_text("long line\rshort\n") == "shortline\n");
  CHECK(plain_terminal_text("first\nsecond\r2\n") == "first\n2econd\n");
  CHECK(plain_terminal_text("shown\r") == "shown");
  CHECK(plain_terminal_text("\r\r\r") == "");
}

TEST_CASE("terminal text: CR LF becomes LF") {
  CHECK(plain_terminal_text("one\r\ntwo\r\n\r\n") == "one\ntwo\n\n");
  CHECK(plain_terminal_text("one\r\r\ntwo") == "one\ntwo");
}

TEST_CASE("terminal text: a backspace moves without erasing") {
  CHECK(plain_terminal_text("ab\bc\n") == "ac\n");
  CHECK(plain_terminal_text("abc\b\b\n") == "abc\n");
  CHECK(plain_terminal_text("\b\b\bstart") == "start");
  CHECK(plain_terminal_text("line\n\bnext") == "line\nnext");
  CHECK(plain_terminal_text("|\b/\b-\b\\\bdone") == "done");
  CHECK(plain_terminal_text("b\bbo\bol\bld\bd") == "bold");  // as man pages print it
}

TEST_CASE("terminal text: erasing a line removes its text") {
  CHECK(plain_terminal_text("downloading 10%\r\x1b[Kdone\n") == "done\n");
  CHECK(plain_terminal_text("downloading 10%\r\x1b[0Kdone\n") == "done\n");
  CHECK(plain_terminal_text("abcdef\b\b\x1b[K\n") == "abcd\n");
  CHECK(plain_terminal_text("downloading 10%\x1b[2Kdone\n") == "done\n");
  CHECK(plain_terminal_text("kept\ngone\r\x1b[K") == "kept\n");
}

TEST_CASE("terminal text: a multibyte character is overwritten as a whole") {
  CHECK(plain_terminal_text("ä\bx") == "x");
  CHECK(plain_terminal_text("x\b😀") == "😀");
  CHECK(plain_terminal_text("äöü\raou") == "aou");
  CHECK(plain_terminal_text("⠋ wait\r⠙ wait\r✔ done\n") == "✔ done\n");
  CHECK(to_valid_utf8(plain_terminal_text("漢字漢字\rab\b\b漢\x1b[K\n")).replaced_bytes == 0);
}

TEST_CASE("terminal text: an invalid byte is one cell") {
  CHECK(plain_terminal_text("\xff\xfe\rx") == "x\xfe");
}

TEST_CASE("printable line: control characters are escaped") {
  CHECK(printable_line("plain", 100) == "plain");
  CHECK(printable_line("two\nlines\tand\rmore", 100) == "two\\nlines\\tand\\x0dmore");
  CHECK(printable_line("\x1b[31mred\x07\x7f", 100) == "\\x1b[31mred\\x07\\x7f");
  CHECK(printable_line(std::string("a\0b", 3), 100) == "a\\x00b");
  CHECK(printable_line("ä€😀", 100) == "ä€😀");
  CHECK(printable_line("a\u202eb\u2066c\u2069d", 100) == "a\\u202eb\\u2066c\\u2069d");
  CHECK(printable_line("\u061c\u200e\u200f\u202a", 100) == "\\u061c\\u200e\\u200f\\u202a");
  CHECK(printable_text("one\u2028two\u2029three\nfour", 100) == "one\\u2028two\\u2029three\nfour");
  CHECK(printable_line("\u2027\u202f\u2065\u206a\u061b", 100) == "\u2027\u202f\u2065\u206a\u061b");
  CHECK(printable_line("a\xff", 100) == "a" + k_bad);
  CHECK(printable_line("\u009b31m", 100) == "\\x9b31m");
}

TEST_CASE("printable line: cut between characters, with a mark") {
  CHECK(printable_line("abcdef", 6) == "abcdef");
  CHECK(printable_line("abcdefg", 6) == "abcdef…");
  CHECK(printable_line("aä€", 6) == "aä€");
  CHECK(printable_line("aä€x", 5) == "aä…");
  CHECK(printable_line("ä", 1) == "…");
  CHECK(printable_line("abc", 0) == "…");
  CHECK(printable_line("", 0) == "");
}

TEST_CASE("human bytes: sizes use a suitable unit") {
  const std::vector<std::pair<std::uint64_t, std::string>> cases = {
      {0, "0 bytes"},
      {1, "1 byte"},
      {999, "999 bytes"},
      {1000, "1.0 kB"},
      {1234, "1.2 kB"},
      {999'949, "999.9 kB"},
      {999'950, "1.0 MB"},
      {1'234'567, "1.2 MB"},
      {1'500'000'000, "1.5 GB"},
      {2'000'000'000'000, "2.0 TB"},
      {5'000'000'000'000'000, "5000.0 TB"},
  };
  for (const auto& [bytes, text] : cases) {
    CHECK(human_bytes(bytes) == text);
  }
  CHECK(human_bytes(std::numeric_limits<std::uint64_t>::max()) == "18446744.1 TB");
}

TEST_CASE("printable line: C1 control characters are escaped") {
  const std::string line = printable_line(
      "a\xC2\x9B"
      "31mred",
      100);
  CHECK(line.find('\x9b') == std::string::npos);
  CHECK(line.find("31mred") != std::string::npos);
}

TEST_CASE("terminal text: an unterminated OSC does not remove later lines") {
  CHECK(plain_terminal_text("a\x1b]oops\nline 2\nline 3\n").find("line 3") != std::string::npos);
}

TEST_CASE("terminal text: an incomplete CSI does not remove a newline") {
  CHECK(plain_terminal_text("a\x1b[\nline 2\n") == "a\nline 2\n");
}

TEST_CASE("repeated lines: folded from the fourth, with a count") {
  CHECK(fold_repeated_lines("") == "");
  CHECK(fold_repeated_lines("a\na\na\n") == "a\na\na\n");
  CHECK(fold_repeated_lines("a\na\na\na\n") == "a\n[the line above 3 more times]\n");
  CHECK(fold_repeated_lines("x\na\na\na\na\na\nb\nb") == "x\na\n[the line above 4 more times]\nb\nb");
  CHECK(fold_repeated_lines("\n\n\n\n\nend") == "\n[the line above 4 more times]\nend");
  CHECK(fold_repeated_lines("ab\nab\nab\nab\nabc\n") == "ab\n[the line above 3 more times]\nabc\n");
  CHECK(fold_repeated_lines("same") == "same");
}
