#include "util/json_depth.hpp"

#include <doctest/doctest.h>

#include <string>

using dockbridge::nests_deeper_than;

TEST_CASE("objects and arrays count as levels alike") {
  CHECK_FALSE(nests_deeper_than("", 0));
  CHECK_FALSE(nests_deeper_than("1", 0));
  CHECK(nests_deeper_than("{}", 0));
  CHECK_FALSE(nests_deeper_than(R"({"a":[{"b":1}]})", 3));
  CHECK(nests_deeper_than(R"({"a":[{"b":1}]})", 2));
  CHECK_FALSE(nests_deeper_than(R"([[],[],{},[]])", 2));
}

TEST_CASE("brackets in strings do not count, whatever is escaped around them") {
  CHECK_FALSE(nests_deeper_than(R"(["[[[{{{"])", 1));
  CHECK_FALSE(nests_deeper_than(R"(["\"[[[", "\\"])", 1));
  CHECK(nests_deeper_than(R"(["\\", [1]])", 1));
  CHECK_FALSE(nests_deeper_than(R"(["\)", 1));
}

TEST_CASE("a flood of brackets that never end is deep") {
  CHECK(nests_deeper_than(std::string(100'000, '['), 64));
  CHECK(nests_deeper_than(R"({"a":)" + std::string(100'000, '['), 64));
}
