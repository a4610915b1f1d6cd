#include "agent/code/driver_files.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/temporary_directory.hpp"
#include "util/fd.hpp"

using namespace dockbridge;
using agent::driver_files;
using agent::drivers_directory;
using agent::install_drivers;

namespace {

/// A state directory.
struct DriverState {
  test::TemporaryDirectory directory;
  Fd fd{::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

  [[nodiscard]] std::filesystem::path installed(const std::string& name) const {
    return directory / drivers_directory() / name;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(installed(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] bool is_complete() const {
    return std::all_of(driver_files().begin(), driver_files().end(),
                       [&](const auto& file) { return content(file.name) == file.content; });
  }
  [[nodiscard]] std::size_t entries() const {
    const std::filesystem::directory_iterator all(directory.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
};

}  // namespace

TEST_CASE("driver files: the drivers are embedded under their installed names") {
  for (const char* name : {"bootstrap.py", "dockbridge_driver.py", "dockbridge_rich.py", "dockbridge_magics.py",
                           "dockbridge_ipython.py", "shell.sh"}) {
    CAPTURE(name);
    CHECK_FALSE(agent::driver_file(name).empty());
  }
  CHECK(agent::driver_file("dockbridge_driver.py").starts_with("\"\"\"Driver of a Python session"));
  CHECK(agent::driver_file("python.py").empty());
  CHECK(drivers_directory().size() == std::string("drivers_").size() + 16);
}

TEST_CASE("driver files: an installation is private and leaves nothing else") {
  const DriverState state;
  REQUIRE(install_drivers(state.fd.get()));
  CHECK(state.is_complete());
  CHECK(state.entries() == 1);
  struct stat info {};
  REQUIRE(::stat((state.directory / drivers_directory()).c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  REQUIRE(install_drivers(state.fd.get()));
  CHECK(state.entries() == 1);
}

TEST_CASE("driver files: changed or missing files are replaced") {
  const DriverState state;
  REQUIRE(install_drivers(state.fd.get()));
  std::ofstream(state.installed("dockbridge_driver.py"), std::ios::app) << "import evil\n";
  REQUIRE(install_drivers(state.fd.get()));
  CHECK(state.is_complete());
  std::filesystem::remove(state.installed("dockbridge_rich.py"));
  REQUIRE(install_drivers(state.fd.get()));
  CHECK(state.is_complete());
}

TEST_CASE("driver files: a link in place of the directory is not followed") {
  const DriverState state;
  const test::TemporaryDirectory elsewhere;
  std::filesystem::create_directory_symlink(elsewhere.path(), state.directory / drivers_directory());
  REQUIRE(install_drivers(state.fd.get()));
  CHECK(state.is_complete());
  CHECK_FALSE(std::filesystem::is_symlink(state.directory / drivers_directory()));
  CHECK(std::filesystem::is_empty(elsewhere.path()));
}

TEST_CASE("driver files: a directory that cannot be written is an error") {
  const Fd null(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto installed = install_drivers(null.get());
  REQUIRE_FALSE(installed);
  CHECK(installed.error().code == ErrorCode::state_not_writable);
}
