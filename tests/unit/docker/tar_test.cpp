#include "docker/tar.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/program.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using docker::make_tar;
using docker::TarMember;
using docker::TarReader;
namespace fs = std::filesystem;

namespace {

/// An archive unpacked by the system's tar, for one test.
class Unpacked {
 public:
  explicit Unpacked(const std::string& tar) {
    std::ofstream(m_directory / "a.tar", std::ios::binary) << tar;
    fs::create_directory(m_directory / "out");
    listing = test::run_ok({"tar", "--numeric-owner", "-tvf", m_directory / "a.tar"});
    test::run_ok({"tar", "-xpf", m_directory / "a.tar", "-C", m_directory / "out"});
  }
  [[nodiscard]] unsigned mode(const std::string& name) const {
    struct stat status {};
    REQUIRE(::stat((m_directory / "out" / name).c_str(), &status) == 0);
    return status.st_mode;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(m_directory / "out" / name, std::ios::binary);
    REQUIRE(file);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string listing;

 private:
  test::TemporaryDirectory m_directory;
};

}  // namespace

TEST_CASE("tar: the system's tar unpacks folders and files with modes and content") {
  const std::string binary(
      "\x7f"
      "ELF\0\xff\n",
      7);
  const Unpacked unpacked(make_tar({{"var/lib/box/", 0755, {}},
                                    {"var/lib/box/state/", 01777, {}},
                                    {"var/lib/box/agent", 0755, binary},
                                    {"var/lib/box/secret", 0600, "s"}}));
  CHECK(unpacked.mode("var/lib/box") == (S_IFDIR | 0755U));
  CHECK(unpacked.mode("var/lib/box/state") == (S_IFDIR | 01777U));
  CHECK(unpacked.mode("var/lib/box/agent") == (S_IFREG | 0755U));
  CHECK(unpacked.mode("var/lib/box/secret") == (S_IFREG | 0600U));
  CHECK(unpacked.content("var/lib/box/agent") == binary);
  CHECK(unpacked.content("var/lib/box/secret") == "s");
}

TEST_CASE("tar: entries belong to root by default") {
  const Unpacked unpacked(make_tar({{"d/", 0755, {}}, {"d/f", 0644, "x"}, {"d/g", 0600, "x", 1}}));
  CHECK(unpacked.listing.find("-rw------- 1/0") != std::string::npos);
  CHECK(unpacked.listing.find("drwxr-xr-x 0/0") != std::string::npos);
  CHECK(unpacked.listing.find("-rw-r--r-- 0/0") != std::string::npos);
}

TEST_CASE("tar: content of any size is complete, also around the size of a block") {
  for (const std::size_t size : {0U, 1U, 511U, 512U, 513U, 1024U, 100'000U, 3'000'000U}) {
    CAPTURE(size);
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
      content[i] = static_cast<char>(i * 31 % 251);
    }
    const std::string tar = make_tar({{"before", 0644, "b"}, {"file", 0644, content}, {"after", 0644, "a"}});
    CHECK(tar.size() % 512 == 0);
    const Unpacked unpacked(tar);
    CHECK(unpacked.content("file") == content);
    CHECK(unpacked.content("before") == "b");
    CHECK(unpacked.content("after") == "a");
  }
}

TEST_CASE("tar: a name of 99 bytes is complete") {
  const std::string name(99, 'n');
  const Unpacked unpacked(make_tar({{name, 0644, "x"}}));
  CHECK(unpacked.content(name) == "x");
}

TEST_CASE("tar: equal entries make equal archives") {
  CHECK(make_tar({{"a", 0644, "x"}}) == make_tar({{"a", 0644, "x"}}));
}

TEST_CASE("tar: an empty archive is two empty blocks") {
  CHECK(make_tar({}) == std::string(1024, '\0'));
}

namespace {

std::vector<TarMember> members_of(const std::string& tar, std::size_t piece, std::string_view expected) {
  TarReader reader(expected);
  std::vector<TarMember> members;
  for (std::size_t at = 0; at < tar.size(); at += piece) {
    reader.feed(std::string_view(tar).substr(at, piece));
    while (true) {
      auto member = reader.next();
      REQUIRE(member);
      if (!*member) {
        break;
      }
      members.push_back(std::move(**member));
    }
  }
  return members;
}

/// An archive of some files, made by the system's tar.
std::string system_tar(const std::vector<std::string>& options) {
  const test::TemporaryDirectory directory;
  const std::string long_name(150, 'n');
  fs::create_directory(directory / "d");
  std::ofstream(directory / "d/file") << std::string(1500, 'x');
  std::ofstream(directory / ("d/" + long_name)) << "long";
  fs::create_symlink("file", directory / "d/link");
  fs::permissions(directory / "d", fs::perms(01777));
  fs::permissions(directory / "d/file", fs::perms(0640));
  std::vector<std::string> argv = {"tar", "--sort=name", "-C", directory.path(), "-cf", directory / "a.tar"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.emplace_back("d");
  test::run_ok(argv);
  std::ifstream file(directory / "a.tar", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("tar reader: owner, mode, type and content are read in any format") {
  std::vector<std::string> options;
  std::uint64_t uid = 1000;
  SUBCASE("ustar with a short name only") {
    options = {"--format=ustar", "--owner=:1000", "--exclude=n*"};
  }
  SUBCASE("pax with a uid beyond the octal field") {
    options = {"--format=pax", "--owner=:4000000000"};
    uid = 4'000'000'000;
  }
  SUBCASE("gnu with a binary uid") {
    options = {"--format=gnu", "--owner=:4000000000"};
    uid = 4'000'000'000;
  }
  const std::string tar = system_tar(options);
  for (const std::size_t piece : {1UL, 7UL, 512UL, 100'000UL}) {
    CAPTURE(piece);
    const std::string expected(1500, 'x');
    const auto members = members_of(tar, piece, expected);
    REQUIRE(members.size() == (options.size() == 3 ? 3 : 4));
    CHECK(members[0].name == "d");
    CHECK(members[0].type == TarMember::k_directory);
    CHECK(members[0].mode == 01777U);
    CHECK(members[1].name == "d/file");
    CHECK(members[1].type == TarMember::k_file);
    CHECK(members[1].mode == 0640U);
    CHECK(members[1].has_expected_content);
    CHECK(members[2].name == "d/link");
    CHECK(members[2].type == '2');
    for (const TarMember& member : members) {
      CHECK(member.uid == uid);
    }
    if (members.size() == 4) {
      CHECK(members[3].name == "d/" + std::string(150, 'n'));
      CHECK_FALSE(members[3].has_expected_content);
    }
  }
}

TEST_CASE("tar reader: only identical content counts as expected") {
  const std::string expected(1300, 'e');
  std::string wrong_start = expected;
  wrong_start.front() = 'x';
  std::string wrong_end = expected;
  wrong_end.back() = 'x';
  const std::string tar = make_tar({{"same", 0644, expected},
                                    {"start", 0644, wrong_start},
                                    {"end", 0644, wrong_end},
                                    {"shorter", 0644, std::string_view(expected).substr(1)},
                                    {"longer", 0644, std::string(20'000, 'e')},
                                    {"empty", 0644, ""},
                                    {"again", 0644, expected}});
  for (const std::size_t piece : {1UL, 511UL, 513UL, 100'000UL}) {
    CAPTURE(piece);
    const auto members = members_of(tar, piece, expected);
    REQUIRE(members.size() == 7);
    CHECK(members[4].size == 20'000);
    for (const TarMember& member : members) {
      CAPTURE(member.name);
      CHECK(member.has_expected_content == (member.name == "same" || member.name == "again"));
    }
  }
}

namespace {

/// The header of a file, changed to another type and with a new checksum.
std::string header_of(std::size_t size, char type, std::string_view size_field = {}) {
  std::string header = make_tar({{"a", 0644, std::string(size, 'n')}}).substr(0, 512);
  header[156] = type;
  header.replace(124, size_field.size(), size_field);
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : header) {
    sum += static_cast<unsigned char>(c);
  }
  const std::string digits = fmt::format("{:06o}", sum);
  return header.replace(148, digits.size(), digits).replace(154, 1, 1, '\0');
}

}  // namespace

TEST_CASE("tar reader: only a file has the expected content") {
  const auto members = members_of(system_tar({"--format=pax"}), 512, "");
  REQUIRE(members.size() == 4);
  for (const TarMember& member : members) {
    CAPTURE(member.name);
    CHECK_FALSE(member.has_expected_content);
  }
}

TEST_CASE("tar reader: a link has no content, whatever its size") {
  const auto members = members_of(header_of(700, '1') + make_tar({{"b", 0644, "x"}}), 512, "x");
  REQUIRE(members.size() == 2);
  CHECK(members[0].type == '1');
  CHECK(members[1].name == "b");
}

TEST_CASE("tar reader: sizes beyond the limits are an error") {
  const std::string huge("\x80\0\0\0\x20\0\0\0\0\0\0\0", 12);  // 2 to the power of 61
  for (const std::string& header : {header_of(64 * 1024 + 1, 'L'), header_of(0, '0', huge)}) {
    TarReader reader("content");
    reader.feed(header);
    const auto member = reader.next();
    REQUIRE_FALSE(member);
    CHECK(member.error().code == ErrorCode::engine_error);
  }
  TarReader reader("content");
  reader.feed(header_of(64 * 1024, 'L'));
  CHECK(reader.next());
}

TEST_CASE("tar reader: bytes that are not an archive are an error") {
  const std::string good = make_tar({{"a", 0644, "content"}});
  std::string wrong_sum = good;
  wrong_sum[0] = 'b';
  std::string bad_number = make_tar({{"a", 0644, ""}});
  bad_number[130] = 'x';
  for (const std::string& bytes : {std::string(512, 'x'), wrong_sum, bad_number}) {
    TarReader reader("content");
    reader.feed(bytes);
    const auto member = reader.next();
    REQUIRE_FALSE(member);
    CHECK(member.error().code == ErrorCode::engine_error);
  }
  TarReader cut("content");
  cut.feed(std::string_view(good).substr(0, 515));
  CHECK_FALSE(*cut.next());
}
