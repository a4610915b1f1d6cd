#include "util/json_text.hpp"
#include "support/field.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

using namespace dockbridge;
using dockbridge::test::field;
using nlohmann::json;

namespace {

std::string library_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

TEST_CASE("json_text: the same as the library's") {
  const json value = {
      {"text", "a \"quoted\" \\ path\n\twith \x01\x1f\x7f and \b\f\r, ä € 😀"},
      {"empty", ""},
      {"numbers",
       {0, -1, 1.5, 1e300, std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::int64_t>::min()}},
      {"others", {nullptr, true, false, json::object(), json::array()}},
      {"nested", {{"k\"ey\n", {{{"a", 1}}, {{"b", {1, 2}}}}}}}};
  CHECK(json_text(value) == library_text(value));
  CHECK(json_text("only a text") == "\"only a text\"");
}

TEST_CASE("json_text: known text is copied") {
  CHECK(json_text({{"id", 1}, {"result", with_known_text(R"({"a":[1,"ä"]})")}}) ==
        R"({"id":1,"result":{"a":[1,"ä"]}})");
}

TEST_CASE("json_text: any bytes become valid JSON in UTF-8") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) {
      // Mostly ASCII, so that invalid bytes are surrounded by valid ones.
      byte = static_cast<char>(random() % 4 == 0 ? random() % 256 : 0x20 + random() % 0x5F);
    }
    CAPTURE(bytes);
    const json read = json::parse(json_text(json{{"k", bytes}}), nullptr, false);
    REQUIRE(read.is_object());
    const std::string text = field(read, "k");
    CHECK(std::count(text.begin(), text.end(), '\0') == std::count(bytes.begin(), bytes.end(), '\0'));
    if (library_text(bytes).find("\xEF\xBF\xBD") == std::string::npos) {
      CHECK(field(read, "k") == bytes);
    }
  }
}
