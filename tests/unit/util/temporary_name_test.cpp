#include "util/temporary_name.hpp"

#include <doctest/doctest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
namespace fs = std::filesystem;

namespace {

constexpr const char* k_name = ".dockbridge-0123456789abcdef.tmp";

struct Leftovers {
  test::TemporaryDirectory directory;

  fs::path put(const std::string& name, std::chrono::seconds age) const {
    std::ofstream(directory / name) << "half";
    fs::last_write_time(directory / name, fs::file_time_type::clock::now() - age);
    return directory / name;
  }
  void sweep() const { remove_orphans(directory.fd()); }
};

constexpr auto k_old = k_orphan_age + std::chrono::seconds(60);

}  // namespace

TEST_CASE("temporary names: new ones are recognised and differ") {
  CHECK(is_temporary_name(new_temporary_name()));
  CHECK(new_temporary_name() != new_temporary_name());
  for (const char* other :
       {"", ".dockbridge-.tmp", ".dockbridge-0123456789abcde.tmp", ".dockbridge-0123456789abcdeg.tmp",
        ".dockbridge-0123456789abcdef.tmp~", "dockbridge-0123456789abcdef.tmp", ".dockbridge-77.sock",
        ".dockbridge-0123456789ABCDEF.tmp", ".dockbridge-agent"}) {
    CAPTURE(other);
    CHECK_FALSE(is_temporary_name(other));
  }
}

TEST_CASE("orphans: only old temporary files without a lock are removed") {
  const Leftovers left;
  left.put(k_name, k_old);
  const fs::path young = left.put(".dockbridge-1111111111111111.tmp", std::chrono::seconds(0));
  const fs::path user = left.put(".dockbridge-notes.tmp", k_old);
  const fs::path other = left.put("file", k_old);
  const fs::path linked = left.put(".dockbridge-2222222222222222.tmp", k_old);
  fs::create_hard_link(linked, left.directory / "name");
  const fs::path folder = left.directory / ".dockbridge-3333333333333333.tmp";
  fs::create_directory(folder);
  const fs::path pipe = left.directory / ".dockbridge-4444444444444444.tmp";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const fs::path link = left.directory / ".dockbridge-5555555555555555.tmp";
  fs::create_symlink("file", link);
  left.sweep();
  CHECK_FALSE(fs::exists(left.directory / k_name));
  for (const fs::path& kept : {young, user, other, linked, folder, pipe, link}) {
    CAPTURE(kept);
    CHECK(fs::exists(fs::symlink_status(kept)));
  }
}

TEST_CASE("orphans: a locked temporary file is kept, however old it is") {
  const Leftovers left;
  const fs::path path = left.put(k_name, k_old);
  Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  lock_temporary(file.get());
  left.sweep();
  CHECK(fs::exists(path));
  file.reset();  // its process has ended
  left.sweep();
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("orphans: a file of another user is kept") {
  const Leftovers left;
  const fs::path path = left.put(k_name, k_old);
  if (::geteuid() != 0) {
    CHECK(::chown(path.c_str(), 12345, static_cast<gid_t>(-1)) != 0);
    return;
  }
  REQUIRE(::chown(path.c_str(), 12345, static_cast<gid_t>(-1)) == 0);
  left.sweep();
  CHECK(fs::exists(path));
}
