#include "agent/screen/emulator.hpp"
#include "support/field.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

using namespace dockbridge;
using agent::Emulator;
using dockbridge::test::field;
using nlohmann::json;

namespace {

constexpr wire::TerminalSize k_small{20, 5};

json about(const Emulator& terminal) {
  const std::string screen = terminal.screen();
  return json::parse(screen.substr(0, screen.find('\n')));
}

std::string text(const Emulator& terminal) {
  const std::string screen = terminal.screen();
  return screen.substr(screen.find('\n') + 1);
}

std::string typed_for(Emulator& terminal, const std::string& key) {
  terminal.press(*wire::parse_key(key));
  return terminal.take_typed();
}

}  // namespace

TEST_CASE("emulator: printed text is on the screen with the cursor behind it") {
  Emulator terminal(k_small);
  terminal.show("hello\r\n\r\n\x1b[31mw\xc3\xb6rld\x1b[0m");
  CHECK(text(terminal) == "hello\n\nw\xc3\xb6rld\n");
  CHECK(about(terminal) ==
        json::parse(R"({"columns":20,"rows":5,"cursor":[2,5],"cursorVisible":true,"alternate":false,"addressed":0})"));
}

TEST_CASE("emulator: scrolls and shows the latest overwrite") {
  Emulator terminal(k_small);
  for (int line = 1; line <= 9; ++line) {
    terminal.show(std::to_string(line) + "\r\n");
  }
  CHECK(text(terminal) == "6\n7\n8\n9\n");
  terminal.show("10 %\r55 %");
  CHECK(text(terminal) == "6\n7\n8\n9\n55 %\n");
}

TEST_CASE("emulator: the alternate screen is left with the old content restored") {
  Emulator terminal(k_small);
  terminal.show("prompt$ ");
  terminal.show("\x1b[?1049h\x1b[H\x1b[2J\x1b[?25lmenu");
  CHECK(text(terminal) == "menu\n");
  CHECK(field(about(terminal), "alternate") == true);
  CHECK(field(about(terminal), "cursorVisible") == false);
  terminal.show("\x1b[?25h\x1b[?1049l");
  CHECK(text(terminal) == "prompt$\n");
  CHECK(field(about(terminal), "alternate") == false);
}

TEST_CASE("emulator: keys are encoded in the mode of the program") {
  Emulator terminal(k_small);
  CHECK(typed_for(terminal, "up") == "\x1b[A");
  terminal.show("\x1b[?1h");  // as full-screen programs do
  CHECK(typed_for(terminal, "up") == "\x1bOA");
  CHECK(typed_for(terminal, "enter") == "\r");
  CHECK(typed_for(terminal, "escape") == "\x1b");
  CHECK(typed_for(terminal, "backspace") == "\x7f");
  CHECK(typed_for(terminal, "ctrl-c") == "\x03");
  CHECK(typed_for(terminal, "ctrl-m") == "\r");
  CHECK(typed_for(terminal, "alt-x") == "\x1bx");
  CHECK(typed_for(terminal, "x") == "x");
}

TEST_CASE("emulator: a query for the cursor position gets a reply") {
  Emulator terminal(k_small);
  terminal.show("abc\x1b[6n");
  CHECK(terminal.take_typed() == "\x1b[1;4R");
  CHECK(terminal.take_typed().empty());
}

TEST_CASE("emulator: a resize keeps what fits") {
  Emulator terminal({33, 7});
  terminal.show("kept");
  terminal.resize({10, 3});
  CHECK(text(terminal) == "kept\n");
  CHECK(field(about(terminal), "columns") == 10);
}

TEST_CASE("emulator: reports where the program last addressed the screen") {
  Emulator terminal(k_small, 100);
  terminal.show("\x1b[31m$ \x1b[m 10%\r 20%\x1b[K");
  CHECK(field(about(terminal), "addressed") == 0);
  terminal.show("\x1b[2");
  const auto shown = 100 + std::string("\x1b[31m$ \x1b[m 10%\r 20%\x1b[K").size() + 3;
  CHECK(field(about(terminal), "addressed") == 0);
  terminal.show("J");
  CHECK(field(about(terminal), "addressed") == shown + 1);
  terminal.show("line\r\n");
  CHECK(field(about(terminal), "addressed") == shown + 1);
}

TEST_CASE("emulator: a paste is marked if the program has enabled that") {
  Emulator terminal(k_small);
  terminal.mark_paste(true);
  terminal.mark_paste(false);
  CHECK(terminal.take_typed().empty());
  terminal.show("\x1b[?2004h");
  terminal.mark_paste(true);
  CHECK(terminal.take_typed() == "\x1b[200~");
  terminal.mark_paste(false);
  CHECK(terminal.take_typed() == "\x1b[201~");
}
