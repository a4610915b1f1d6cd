#include "util/base64.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dockbridge;

TEST_CASE("base64 is what the standard says, padding included") {
  CHECK(to_base64("") == "");
  CHECK(to_base64("f") == "Zg==");
  CHECK(to_base64("fo") == "Zm8=");
  CHECK(to_base64("foo") == "Zm9v");
  CHECK(to_base64("foobar") == "Zm9vYmFy");
  CHECK(to_base64("\xFB\xFF\xBF") == "+/+/");
}

TEST_CASE("every byte, at every place in a group, comes back") {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes.push_back(static_cast<char>(i));
  }
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const std::string part = bytes.substr(bytes.size() - length);
    REQUIRE(from_base64(to_base64(part)) == part);
  }
}

TEST_CASE("missing padding and line breaks are passed over") {
  CHECK(from_base64("Zg") == "f");
  CHECK(from_base64("Zm8") == "fo");
  CHECK(from_base64("Zm9v\r\nYmFy\n") == "foobar");
  CHECK(from_base64("Zg==\n") == "f");
  CHECK(from_base64("") == "");
}

TEST_CASE("what is not base64 is refused, not guessed at") {
  CHECK(!from_base64("Z"));
  CHECK(!from_base64("Zm9vY"));
  CHECK(!from_base64("Zg==Zg=="));
  CHECK(!from_base64("Zm 9v"));
  CHECK(!from_base64("Zm-_"));
  CHECK(!from_base64("Zg=\xC3\xA4"));
  CHECK(!from_base64(std::string("Zg\0=", 4)));
}
