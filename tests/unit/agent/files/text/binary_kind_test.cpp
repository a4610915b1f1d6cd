#include "agent/files/text/binary_kind.hpp"

#include <doctest/doctest.h>

#include <string>

using dockbridge::agent::describe_binary;
using dockbridge::agent::image_type_of;
using namespace std::string_literals;

TEST_CASE("binary kind: images are recognised by their first bytes") {
  CHECK(image_type_of("\x89PNG\r\n\x1A\n....") == "image/png");
  CHECK(image_type_of("\xFF\xD8\xFF\xE0") == "image/jpeg");
  CHECK(image_type_of("GIF89a") == "image/gif");
  CHECK(image_type_of("RIFF\x10\0\0\0WEBPVP8 "s) == "image/webp");
  CHECK(image_type_of("RIFF\x10\0\0\0WAVEfmt "s) == std::nullopt);
  CHECK(image_type_of("....\x10\0\0\0WEBPVP8 "s) == std::nullopt);
  CHECK(image_type_of("\x89PNG") == std::nullopt);
  CHECK(image_type_of("") == std::nullopt);
}

TEST_CASE("binary kind: common file formats have their usual names") {
  CHECK(describe_binary("\x7F"
                        "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0"s) == "ELF executable");
  CHECK(describe_binary("\x7F"
                        "ELF\2\1\1\0\0\0\0\0\0\0\0\0\1\0"s) == "ELF object file");
  CHECK(describe_binary("\x7F"
                        "ELF\1\2\1\0\0\0\0\0\0\0\0\0\0\4"s) == "ELF core dump");
  CHECK(describe_binary("\x7F"
                        "ELF") == "ELF file");
  CHECK(describe_binary("\x1F\x8B\x08") == "gzip archive");
  CHECK(describe_binary("SQLite format 3\0"s) == "SQLite database");
  CHECK(describe_binary("\0asm\1\0\0\0"s) == "WebAssembly module");
  CHECK(describe_binary("\xCA\xFE\xBA\xBE\0\0\0\x34"s) == "Java class");
  CHECK(describe_binary(std::string(257, '\0') + "ustar  ") == "tar archive");
  CHECK(describe_binary("!<arch>\ndebian-binary   ") == "Debian package");
  CHECK(describe_binary("!<arch>\nx.o/") == "static library");
  CHECK(describe_binary("\xA7\r\r\n\0\0\0\0"s) == "Python bytecode");
  CHECK(describe_binary("RIFF\x10\0\0\0WAVEfmt "s) == "WAV sound");
  CHECK(describe_binary("\0\1\2\3"s) == "binary data");
  CHECK(describe_binary("") == "binary data");
}
