#include "agent/files/text/encoding.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "support/repeated.hpp"

using namespace dockbridge;
using agent::decode;
using agent::detect_encoding;
using agent::encode;
using agent::Encoding;
using agent::EncodingDetector;
using agent::line_ends_of;
using agent::LineEnds;
using test::repeated;
using namespace std::string_literals;

namespace {

const std::vector<Encoding> k_all = {Encoding::utf8, Encoding::utf8_bom, Encoding::utf16_le, Encoding::utf16_be,
                                     Encoding::latin1};

/// Detects an encoding from two pieces, for every position of the cut.
std::optional<Encoding> detected_in_pieces(const std::string& bytes) {
  const auto whole = detect_encoding(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EncodingDetector detector;
    detector.feed(std::string_view(bytes).substr(0, cut));
    detector.feed(std::string_view(bytes).substr(cut));
    CAPTURE(cut);
    CHECK(detector.result() == whole);
  }
  EncodingDetector by_byte;
  for (const char c : bytes) {
    by_byte.feed(std::string_view(&c, 1));
  }
  CHECK(by_byte.result() == whole);
  return whole;
}

}  // namespace

TEST_CASE("encoding: names convert back to encodings") {
  for (const Encoding encoding : k_all) {
    CHECK(wire::value_named<Encoding>(name_of(encoding)) == encoding);
  }
  CHECK(name_of(Encoding::utf16_le) == "utf-16le"s);
  CHECK(wire::value_named<Encoding>("UTF-8") == std::nullopt);
  CHECK(wire::value_named<Encoding>("") == std::nullopt);
}

TEST_CASE("encoding: detected from bytes cut at any position") {
  CHECK(detected_in_pieces("") == Encoding::utf8);
  CHECK(detected_in_pieces("plain\ttext\r\n\x1b[31mred\x1b[0m\f\n") == Encoding::utf8);
  CHECK(detected_in_pieces("aä€😀\n") == Encoding::utf8);
  CHECK(detected_in_pieces("\xEF\xBB\xBFtext") == Encoding::utf8_bom);
  CHECK(detected_in_pieces("\xEF\xBB\xBF") == Encoding::utf8_bom);
  CHECK(detected_in_pieces("\xFF\xFEt\0"s) == Encoding::utf16_le);
  CHECK(detected_in_pieces("\xFE\xFF\0t"s) == Encoding::utf16_be);
  CHECK(detected_in_pieces("caf\xE9\n") == Encoding::latin1);
  CHECK(detected_in_pieces(repeated("a line of text\n", 10) + "€€€" + repeated("more of it\n", 12)) == Encoding::utf8);
}

TEST_CASE("encoding: invalid UTF-8 is detected as Latin-1") {
  for (const std::string bytes :
       {"cut \xE2\x82", "overlong \xC0\xAF ", "overlong \xE0\x80\xAF ", "overlong \xF0\x80\x80\xAF ",
        "surrogate \xED\xA0\x80 ", "beyond \xF4\x90\x80\x80 ", "\x80 alone", "lead \xC3 alone", "\xFF never"}) {
    CAPTURE(bytes);
    CHECK(detected_in_pieces(bytes) == Encoding::latin1);
    CHECK(decode(bytes, Encoding::utf8).error().code == ErrorCode::not_decodable);
    CHECK(encode(bytes, Encoding::utf8).error().code == ErrorCode::not_encodable);
  }
  CHECK(detect_encoding("\xEF\xBB\xBF caf\xE9") == Encoding::latin1);
  CHECK(detect_encoding("\xED\x9F\xBF \xEE\x80\x80 \xF4\x8F\xBF\xBF \xC2\x80 \xE0\xA0\x80 \xF0\x90\x80\x80") ==
        Encoding::utf8);
}

TEST_CASE("encoding: NUL bytes or many control characters mean binary") {
  CHECK(detected_in_pieces("text with\0one"s) == std::nullopt);
  CHECK(detected_in_pieces(repeated("text\n", 30) + "\0"s + repeated("text\n", 30)) == std::nullopt);
  CHECK(detected_in_pieces(repeated("\x01\x02\x03\x04 abc", 10)) == std::nullopt);
  CHECK(detected_in_pieces("a\x01"s + "b\x01"s + "c\n") == Encoding::utf8);  // a few may separate fields
  CHECK(detected_in_pieces("\x8A\x01\xFF\x02\x90z") == std::nullopt);
  CHECK(detected_in_pieces("\xFF\xFE\0\0a\0\0\0"s) == std::nullopt);  // UTF-32
}

TEST_CASE("encoding: encode is the inverse of decode") {
  const std::vector<std::pair<Encoding, std::string>> files = {
      {Encoding::utf8, ""},
      {Encoding::utf8, "aä€😀\r\n"},
      {Encoding::utf8_bom, "\xEF\xBB\xBF"},
      {Encoding::utf8_bom, "\xEF\xBB\xBF\xEF\xBB\xBFtwice"},
      {Encoding::utf16_le, "\xFF\xFE"},
      {Encoding::utf16_le, "\xFF\xFE\x61\0\xE4\0\xAC\x20\x3D\xD8\x00\xDE"s},
      {Encoding::utf16_be, "\xFE\xFF\0\x61\0\xE4\x20\xAC\xD8\x3D\xDE\x00"s},
      {Encoding::latin1, "caf\xE9 \x80\xFF"},
  };
  for (const auto& [encoding, bytes] : files) {
    CAPTURE(bytes);
    REQUIRE(detect_encoding(bytes) == encoding);
    const auto text = decode(bytes, encoding);
    REQUIRE(text);
    CHECK(encode(*text, encoding) == bytes);
  }
  CHECK(decode(files[5].second, Encoding::utf16_le) == "aä€😀");
  CHECK(decode(files[6].second, Encoding::utf16_be) == "aä€😀");
  CHECK(decode(files[7].second, Encoding::latin1) == "café \xC2\x80ÿ");
  CHECK(decode("\xEF\xBB\xBFtext", Encoding::utf8_bom) == "text");
}

TEST_CASE("encoding: random text survives decode and encode") {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {"a", "\n", "ä", "€", "😀", "\xE9", "\xFF\xFE", "\xD8", "\xEF\xBB\xBF", "z\t"};
  std::size_t of_text = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (std::size_t length = random() % 12; length > 0; --length) {
      bytes += pieces[random() % pieces.size()];
    }
    CAPTURE(bytes);
    const auto encoding = detected_in_pieces(bytes);
    REQUIRE(encoding);
    if (const auto text = decode(bytes, *encoding)) {
      ++of_text;
      CHECK(encode(*text, *encoding) == bytes);
    } else {
      CHECK((*encoding == Encoding::utf16_le || *encoding == Encoding::utf16_be));
    }
  }
  CHECK(of_text > 1000);
}

TEST_CASE("encoding: invalid UTF-16 is rejected with its position") {
  CHECK(decode("\xFF\xFE\x61"s, Encoding::utf16_le).error().message.find("odd number") != std::string::npos);
  for (const std::string& units :
       {"\x3D\xD8"s, "\x3D\xD8\x61\0"s, "\x00\xDE"s, "\x00\xDE\x3D\xD8"s, "\x3D\xD8\x3D\xD8"s}) {
    const auto text = decode("\xFF\xFE\x61\0"s + units, Encoding::utf16_le);
    REQUIRE(!text);
    CHECK(text.error().code == ErrorCode::not_decodable);
    CHECK(text.error().message.find("at byte 4") != std::string::npos);
  }
}

TEST_CASE("encoding: the error names the first character not in Latin-1") {
  const auto bytes = encode("é\nprice:\n  5 € or 😀", Encoding::latin1);
  REQUIRE(!bytes);
  CHECK(bytes.error().code == ErrorCode::not_encodable);
  CHECK(bytes.error().message.find("Line 3: € (U+20AC)") != std::string::npos);
  CHECK(encode("😀", Encoding::latin1).error().message.find("U+1F600") != std::string::npos);
}

TEST_CASE("encoding: line ends are detected") {
  CHECK(line_ends_of("") == LineEnds::none);
  CHECK(line_ends_of("one\rline") == LineEnds::none);
  CHECK(line_ends_of("\n") == LineEnds::lf);
  CHECK(line_ends_of("a\nb") == LineEnds::lf);
  CHECK(line_ends_of("a\r\nb\r\n") == LineEnds::crlf);
  CHECK(line_ends_of("a\r\nb\n") == LineEnds::mixed);
  CHECK(line_ends_of("\n\r\n") == LineEnds::mixed);
  CHECK(name_of(LineEnds::crlf) == "crlf"s);
}
