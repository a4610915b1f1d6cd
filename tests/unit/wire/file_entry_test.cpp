#include "wire/file_search_messages.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using wire::decode_entries;
using wire::FileEntry;
using wire::FileType;

TEST_CASE("file entry: any name survives the round trip") {
  const std::vector<FileEntry> entries = {{"plain", FileType::regular, 5, 1'700'000'000'123, 0644, ""},
                                          {"two\nlines and a space", FileType::directory, 0, -5, 01777, ""},
                                          {"\xFF\xFE", FileType::symlink, 7, 0, 0777, "somewhere\xFF else"},
                                          {"found", FileType::regular, 9'223'372'036'854'775'807U, 1, std::nullopt, ""},
                                          {"", FileType::unknown}};
  std::string body;
  for (const FileEntry& entry : entries) {
    body += wire::encode(entry);
  }
  const auto decoded = decode_entries(body);
  REQUIRE(decoded);
  REQUIRE(decoded->size() == entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CAPTURE(i);
    CHECK((*decoded)[i].path == entries[i].path);
    CHECK((*decoded)[i].type == entries[i].type);
    CHECK((*decoded)[i].size == entries[i].size);
    CHECK((*decoded)[i].modified_at_ms == entries[i].modified_at_ms);
    CHECK((*decoded)[i].mode == entries[i].mode);
    CHECK((*decoded)[i].target == entries[i].target);
  }
  CHECK(decode_entries("")->empty());
}

TEST_CASE("file entry: the type is written by its name") {
  const std::string nul(1, '\0');
  for (std::size_t i = 0; i < wire::k_names<FileType>.size(); ++i) {
    CHECK(wire::encode(FileEntry{"x", static_cast<FileType>(i)}) ==
          std::string(wire::k_names<FileType>[i]) + " 0 0 -" + nul + "x" + nul + nul);
  }
  CHECK(wire::name_of(FileType::character_device) == "char");
  CHECK(wire::name_of(FileType::unknown) == "unknown");
}

TEST_CASE("file entry: a truncated entry is rejected") {
  const std::string body = wire::encode(FileEntry{"path", FileType::symlink, 12, 34, 0644, "target"});
  REQUIRE(decode_entries(body));
  for (std::size_t length = 1; length < body.size(); ++length) {
    CAPTURE(length);
    CHECK(!decode_entries(body.substr(0, length)));
  }
}

TEST_CASE("file entry: malformed numbers are rejected") {
  const auto with_facts = [](const std::string& facts) {
    const std::string nul(1, '\0');
    return decode_entries(facts + nul + "path" + nul + nul);
  };
  CHECK(with_facts("file 1 2 644"));
  CHECK(with_facts("file 1 2 -"));
  for (const char* facts : {"file x 2 644", "file 1 x 644", "file 1 2 9", "file 1 2 ", "file 1 2", "file -1 2 644", "",
                            "file 1 2 644 5", "file  1 2 644", "strange 1 2 644", "fi\nle 1 2 644", " 1 2 644",
                            "file 1 2 -5", "file 99999999999999999999 2 644"}) {
    CAPTURE(facts);
    CHECK(!with_facts(facts));
  }
}
