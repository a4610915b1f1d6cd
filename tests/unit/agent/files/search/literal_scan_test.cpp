#include "agent/files/search/literal_scan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

using namespace dockbridge;
using agent::LiteralScan;

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return text;
}

}  // namespace

TEST_CASE("literal scan: finds exactly the occurrences in random texts") {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::size_t i = random() % 200; i > 0; --i) {
      text += "aAbB\n\x01!\xe1"[random() % 8];
    }
    std::string literal;
    for (std::size_t i = 1 + random() % 5; i > 0; --i) {
      literal += "aAbB\n\x01!\xe1"[random() % 8];
    }
    const std::size_t from = random() % 200;
    CHECK(LiteralScan(literal).find(text, from) == text.find(literal, from));
    CHECK(LiteralScan(literal, true).find(text, from) == lower(text).find(lower(literal), from));
  }
}

TEST_CASE("literal scan: finds a literal at every position of any text size") {
  for (const std::string literal :
       {"x", "xy", "needle in a haystack that is longer than a block of thirty-two bytes"}) {
    for (std::size_t before = 0; before < 100; ++before) {
      for (const std::size_t after : {0, 1, 31, 32, 33, 100}) {
        const std::string text = std::string(before, '.') + literal + std::string(after, '.');
        CHECK(LiteralScan(literal).find(text, 0) == before);
        CHECK(LiteralScan(literal).find(text, before) == before);
        CHECK(LiteralScan(literal).find(text, before + 1) == LiteralScan::k_none);
      }
    }
  }
}
