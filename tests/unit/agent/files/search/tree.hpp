#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_directory.hpp"

namespace dockbridge::test {

/// A tree of files that is removed at the end of the test.
class Tree {
 public:
  void put(const std::string& path, const std::string& content = "x\n") const {
    std::filesystem::create_directories((m_directory / path).parent_path());
    std::ofstream(m_directory / path, std::ios::binary) << content;
  }
  void make_directory(const std::string& path) const { std::filesystem::create_directories(m_directory / path); }
  void link(const std::string& target, const std::string& path) const {
    std::filesystem::create_symlink(target, m_directory / path);
  }
  [[nodiscard]] int fd() const { return m_directory.fd(); }
  [[nodiscard]] std::string path(const std::string& name) const { return (m_directory / name).string(); }

 private:
  TemporaryDirectory m_directory;
};

}  // namespace dockbridge::test
