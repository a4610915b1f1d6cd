#include "util/terminal_parser.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dockbridge;

namespace {

/// Records events: text unchanged, control characters as ^X, sequences as <parameters final>.
struct Notes {
  std::string written;
  bool addresses = false;

  void text(std::string_view run) { written += run; }
  void control(char byte) { written += {'^', static_cast<char>(byte + '@')}; }
  void sequence(const TerminalParser::Sequence& sequence) {
    written += (sequence.is_csi ? "<[" : "<") + std::string(sequence.parameters) + sequence.final + ">";
    addresses = addresses || addresses_screen(sequence);
  }
};

Notes parsed(std::string_view output) {
  Notes notes;
  TerminalParser().feed(output, notes);
  return notes;
}

}  // namespace

TEST_CASE("terminal parser: output is text, controls and sequences") {
  CHECK(parsed("a\x1b[1;31mred\x1b[m\r\n").written == "a<[1;31m>red<[m>^M^J");
  CHECK(parsed("\x1b[?1049h\x1b(B\x1b"
               "7x\x1b"
               "8")
            .written == "<[?1049h><(B><7>x<8>");
  CHECK(parsed("\x1b]0;title\ax\x1b]0;title\x1b\\y\x1bPq\x1b\\z").written == "xyz");
  CHECK(parsed("\x1b]0;broken off\x1b[Hx").written == "<[H>x");
  CHECK(parsed("\x1b[1\x18x").written == "x");
  CHECK(parsed("w\xc3\xb6rld").written == "w\xc3\xb6rld");
}

TEST_CASE("terminal parser: a sequence may be split between pieces") {
  const std::string output = "a\x1b[12;34Hb\x1b]0;t\x1b\\c";
  for (std::size_t cut = 0; cut <= output.size(); ++cut) {
    CAPTURE(cut);
    Notes notes;
    TerminalParser parser;
    parser.feed(std::string_view(output).substr(0, cut), notes);
    parser.feed(std::string_view(output).substr(cut), notes);
    CHECK(notes.written == "a<[12;34H>bc");
  }
}

TEST_CASE("terminal parser: numbers have bounds and defaults") {
  const TerminalParser::Sequence sequence{true, 'H', "12;;99999999999"};
  CHECK(sequence.number(0, 1) == 12);
  CHECK(sequence.number(1, 7) == 7);
  CHECK(sequence.number(2, 1) == 9999);
  CHECK(sequence.number(3, 5) == 5);
  CHECK(TerminalParser::Sequence{true, 'h', "?25;1049"}.has_mode(1049));
  CHECK_FALSE(TerminalParser::Sequence{true, 'h', "1049"}.has_mode(1049));
}

TEST_CASE("terminal parser: menus address the screen, prompts and progress bars do not") {
  for (const auto* drawing :
       {"\x1b[H", "\x1b[5;1Hx", "\x1b[2J", "\x1b[3J", "\x1b[1;40r", "\x1b[4d", "\x1b[2M", "\x1bM"}) {
    CAPTURE(drawing);
    CHECK(parsed(drawing).addresses);
  }
  for (const auto* line : {"\r 50%\x1b[K", "\x1b[31mred\x1b[m", "\x1b[1G\x1b[0J> \x1b[3G", "\x1b[J", "\x1b[3A",
                           "\x1b[8D\x1b[8C", "\x1b[?2004h", "\x1b[>4;2m", "\x1b[6n", "\x1b[2P\x1b[1@"}) {
    CAPTURE(line);
    CHECK_FALSE(parsed(line).addresses);
  }
}
