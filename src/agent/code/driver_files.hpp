#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"

namespace dockbridge::agent {

/// A file of a driver, embedded in this program.
struct DriverFile {
  std::string name;  ///< in the directory in which it is installed
  std::string_view content;
};

/// The drivers of code sessions (src/agent/drivers).
const std::vector<DriverFile>& driver_files();
/// Content of the file with this name.
std::string_view driver_file(std::string_view name);

/// Name of the directory with the drivers in the state directory. It contains a digest of all files, so agents of
/// different versions have different directories. It is never removed, because sessions load modules from it later.
std::string drivers_directory();

/// Ensures that the directory exists in the state directory and has the right content. Sessions of several servers may
/// do this at the same time.
Result<void> install_drivers(int state_directory_fd);

}  // namespace dockbridge::agent
