#include "agent/files/change/spare_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/temporary_directory.hpp"
#include "util/file.hpp"

using namespace dockbridge;
using agent::SpareFile;
namespace fs = std::filesystem;

namespace {

Fd open_directory(const fs::path& path) {
  return Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

TEST_CASE("spare file: is invisible until it has a name, then an ordinary file") {
  const test::TemporaryDirectory directory;
  SpareFile spare;
  spare.prepare(directory.fd());
  CHECK(fs::is_empty(directory.path()));
  const Fd file = spare.take(directory.fd(), "named");
  REQUIRE(file);
  REQUIRE(write_all(file.get(), "content"));
  CHECK(read_file_at(directory.fd(), "named", 100) == "content");
  struct stat info {};
  REQUIRE(::fstat(file.get(), &info) == 0);
  CHECK((info.st_mode & 07777U) == 0600);
  CHECK(info.st_nlink == 1);
}

TEST_CASE("spare file: is used once") {
  const test::TemporaryDirectory directory;
  SpareFile spare;
  CHECK(!spare.take(directory.fd(), "never prepared"));
  spare.prepare(directory.fd());
  CHECK(spare.take(directory.fd(), "first"));
  CHECK(!spare.take(directory.fd(), "second"));
  CHECK(!fs::exists(directory / "second"));
}

TEST_CASE("spare file: is used only in its directory, however that is opened") {
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "other");
  SpareFile spare;
  spare.prepare(directory.fd());
  CHECK(!spare.take(open_directory(directory / "other").get(), "name"));
  CHECK(spare.take(open_directory(directory / "other" / "..").get(), "name"));
}

TEST_CASE("spare file: an existing name is not overwritten") {
  const test::TemporaryDirectory directory;
  REQUIRE(replace_file_at(directory.fd(), "taken", "content"));
  SpareFile spare;
  spare.prepare(directory.fd());
  CHECK(!spare.take(directory.fd(), "taken"));
  CHECK(read_file_at(directory.fd(), "taken", 100) == "content");
}

TEST_CASE("spare file: none where the file system does not support it") {
  SpareFile spare;
  const Fd pseudo = open_directory("/proc/self");
  spare.prepare(pseudo.get());
  CHECK(!spare.take(pseudo.get(), "name"));
  spare.prepare(-1);
  CHECK(!spare.take(-1, "name"));
}

TEST_CASE("spare file: does not prevent removing its directory") {
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "short-lived");
  SpareFile spare;
  const Fd short_lived = open_directory(directory / "short-lived");
  spare.prepare(short_lived.get());
  CHECK(fs::remove(directory / "short-lived"));
  CHECK(!spare.take(short_lived.get(), "name"));
}
