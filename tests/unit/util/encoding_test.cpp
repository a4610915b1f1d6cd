#include "util/encoding.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;

TEST_CASE("base64: every length of the last group survives the round trip") {
  CHECK(to_base64("") == "");
  CHECK(to_base64("f") == "Zg==");
  CHECK(to_base64("fo") == "Zm8=");
  CHECK(to_base64("foo") == "Zm9v");
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(from_base64(to_base64(bytes)) == bytes);
    bytes.push_back(static_cast<char>(i * 7));
  }
}

TEST_CASE("base64: text that is not exactly an encoder's output is rejected") {
  for (const char* bad : {"Zg", "Zg=", "Z===", "Zm9v====", "Zg==Zg==", "Zh==", "Zm9!", "Zm 9v", "=Zg=", "Zm9v\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(from_base64(bad));
  }
}

TEST_CASE("encoding: hex, and comparison in constant time") {
  CHECK(to_hex(std::string("\x00\xff\x1a", 3)) == "00ff1a");
  CHECK(equal_in_constant_time("secret", "secret"));
  CHECK_FALSE(equal_in_constant_time("secret", "secreT"));
  CHECK_FALSE(equal_in_constant_time("secret", "secret "));
  CHECK_FALSE(equal_in_constant_time("", "s"));
}

TEST_CASE("percent-encoding: decoded, or rejected if malformed") {
  CHECK(from_percent_encoding("a%2Fb%2fc%20%C3%A4") == "a/b/c ä");
  CHECK(from_percent_encoding("") == "");
  CHECK(from_percent_encoding("100%25") == "100%");
  for (const char* broken : {"%", "a%2", "%zz", "%2g", "%%20"}) {
    CHECK_FALSE(from_percent_encoding(broken));
  }
}
