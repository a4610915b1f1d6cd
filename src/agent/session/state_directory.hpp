#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "util/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// The directory in the container that outlives sessions: one folder per process.
class StateDirectory {
 public:
  /// The first place that can be written, private to this user.
  static Result<StateDirectory> open();

  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] std::string path_of(const std::string& process) const { return m_path + "/" + process; }

  Result<Fd> create(const std::string& process) const;
  /// Error `no_such_process` if there is none.
  Result<Fd> open_process(const std::string& process) const;
  void remove(const std::string& process) const;
  [[nodiscard]] std::vector<std::string> processes() const;

  struct Retention {
    std::chrono::seconds age{3600};
    std::size_t count = 1000;
  };
  /// Removes what finished processes left behind, oldest first. Does nothing while another session does it.
  void prune(const Retention& retention) const;

 private:
  std::string m_path;
  Fd m_fd;
};

}  // namespace dockbridge::agent
