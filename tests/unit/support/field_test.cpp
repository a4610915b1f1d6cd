#include "support/field.hpp"

#include <doctest/doctest.h>

#include <string>

using dockbridge::test::field;
using nlohmann::json;

TEST_CASE("field: keys and indices lead to a value") {
  const json document = {{"list", {{{"name", "a"}}, {{"name", "b"}}}}};
  CHECK(field(document, "list", 1, "name") == "b");
  CHECK(field(document, std::string("list")).size() == 2);
}

TEST_CASE("field: a missing key fails the test" * doctest::should_fail()) {
  const json document = {{"present", 1}};
  CHECK(field(document, "absent") == 1);
}

TEST_CASE("field: an index behind the end fails the test" * doctest::should_fail()) {
  const json document = json::array({1});
  CHECK(field(document, 1) == 1);
}

TEST_CASE("field: a value without fields fails the test" * doctest::should_fail()) {
  const json document = "text";
  CHECK(field(document, "key") == 1);
}
