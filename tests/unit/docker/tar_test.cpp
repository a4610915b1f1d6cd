#include "docker/tar.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "support/program.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using docker::make_tar;
namespace fs = std::filesystem;

namespace {

/// What the system's tar makes of an archive, gone at the end of the test.
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

TEST_CASE("the system's tar unpacks folders and files with their modes and content") {
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

TEST_CASE("everything in it belongs to root") {
  const Unpacked unpacked(make_tar({{"d/", 0755, {}}, {"d/f", 0644, "x"}}));
  CHECK(unpacked.listing.find("drwxr-xr-x 0/0") != std::string::npos);
  CHECK(unpacked.listing.find("-rw-r--r-- 0/0") != std::string::npos);
}

TEST_CASE("content of any size comes out whole, also around the size of a block") {
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

TEST_CASE("a name of 99 bytes is taken whole") {
  const std::string name(99, 'n');
  const Unpacked unpacked(make_tar({{name, 0644, "x"}}));
  CHECK(unpacked.content(name) == "x");
}

TEST_CASE("the same entries make the same archive") {
  CHECK(make_tar({{"a", 0644, "x"}}) == make_tar({{"a", 0644, "x"}}));
}

TEST_CASE("an archive of nothing is two empty blocks") {
  CHECK(make_tar({}) == std::string(1024, '\0'));
}
