#include "wire/terminal.hpp"

#include <doctest/doctest.h>

#include <string>

using dockbridge::wire::Key;
using dockbridge::wire::parse_key;

TEST_CASE("keys: every key name is parsed") {
  CHECK(parse_key("enter")->kind == Key::Kind::enter);
  CHECK(parse_key("up")->kind == Key::Kind::up);
  CHECK(parse_key("page-down")->kind == Key::Kind::page_down);
  CHECK(parse_key("f12")->kind == Key::Kind::function);
  CHECK(parse_key("f12")->number == 12);
  CHECK(parse_key("f")->number == 'f');
  CHECK(parse_key("space")->number == ' ');
  CHECK(parse_key("~")->number == '~');
}

TEST_CASE("keys: modifiers precede the key in any order") {
  const auto key = parse_key("alt-ctrl-shift-left");
  REQUIRE(key);
  CHECK(key->kind == Key::Kind::left);
  CHECK(key->alt);
  CHECK(key->ctrl);
  CHECK(key->shift);
  CHECK(parse_key("ctrl-c")->ctrl);
  CHECK_FALSE(parse_key("c")->ctrl);
  CHECK(parse_key("ctrl--")->number == '-');
}

TEST_CASE("keys: unknown names are rejected") {
  for (const std::string text : {"", "ctrl-", "f0", "f13", "f1x", "hello", "Up", "\x01", "é", " up", "ctrl-ctrl"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_key(text));
  }
}
