#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::test {

using nlohmann::json;

/// The built `dockbridge` program.
std::string program_path();

struct Finished {
  int exit_code = 0;
  std::string out;
  std::string err;
};
/// Runs a program to its end; fails the test if that takes longer than `patience`.
Finished run(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment = {},
             milliseconds patience = seconds(60));
/// The same, and fails the test unless it exits with 0. Returns what it printed, without the final newline.
std::string run_ok(const std::vector<std::string>& argv);

/// A running `dockbridge` with a client's end of its stdio. Killed and reaped when it goes out of scope.
class Server {
 public:
  explicit Server(const std::vector<std::string>& arguments = {},
                  const std::map<std::string, std::string>& environment = {},
                  const std::vector<std::string>& prefix = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void send(const json& message);
  void send_raw(std::string_view bytes);
  /// The next message; fails the test if none comes in time.
  json receive(milliseconds patience = seconds(30));
  /// The answer to this id, which may have come already; others (progress, other answers) are kept in `seen`.
  json receive_answer(const json& id, milliseconds patience = seconds(30));
  /// Whether nothing at all arrives for so long.
  bool stays_silent(milliseconds span);

  /// Sends a request with a fresh id and waits for its answer.
  json request(const std::string& method, const json& params = json::object(), milliseconds patience = seconds(30));
  int send_request(const std::string& method, const json& params = json::object());
  void initialize(const std::string& version = "2025-11-25");
  /// tools/call; returns the `result`. A rationale is added.
  json call(const std::string& tool, json arguments, milliseconds patience = seconds(30));
  /// Starts a tools/call without waiting; returns its id.
  int start_call(const std::string& tool, json arguments, const json& meta = nullptr);
  json execute(const std::string& command, json more = json::object());

  void close_input() { m_in.reset(); }
  void signal(int number) const;
  /// Waits for the program's end and returns its wait status.
  int wait_for_exit(milliseconds patience = seconds(10));
  [[nodiscard]] pid_t pid() const { return m_pid; }
  /// Everything it has logged so far.
  std::string log();

  std::vector<json> seen;

 private:
  bool fill(milliseconds patience);
  Fd m_in;
  Fd m_out;
  std::string m_log_path;
  std::string m_buffer;
  pid_t m_pid = -1;
  int m_next_id = 1;
};

/// Polls `condition` until it holds; fails the test with `what` if it does not in time.
void eventually(const std::string& what, const std::function<bool()>& condition, milliseconds patience = seconds(10));

}  // namespace dockbridge::test
