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
/// Runs a program to its end. Fails the test if that takes longer than `patience`.
Finished run(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment = {},
             milliseconds patience = seconds(60));
/// Runs a program, and fails the test unless it exits with 0. Returns its output without the final newline.
std::string run_ok(const std::vector<std::string>& argv);

/// A running `dockbridge`, with the client's end of its stdio. The destructor kills and reaps it.
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
  /// Receives the next message. Fails the test if none arrives in time.
  json receive(milliseconds patience = seconds(30));
  /// Receives the answer to this id, or returns it if it has arrived before. Other messages are kept in `seen`.
  json receive_answer(const json& id, milliseconds patience = seconds(30));
  /// True if no message arrives for this time.
  bool stays_silent(milliseconds span);

  /// Sends a request with a fresh id and waits for its answer.
  json request(const std::string& method, const json& params = json::object(), milliseconds patience = seconds(30));
  int send_request(const std::string& method, const json& params = json::object());
  void initialize(const std::string& version = "2025-11-25");
  /// Sends tools/call with a rationale, and returns the `result`.
  json call(const std::string& tool, json arguments, milliseconds patience = seconds(30));
  /// Sends tools/call without waiting, and returns its id.
  int start_call(const std::string& tool, json arguments, const json& meta = nullptr);
  json execute(const std::string& command, json more = json::object());

  void close_input() { m_in.reset(); }
  void signal(int number) const;
  /// Waits for the program's end and returns its wait status.
  int wait_for_exit(milliseconds patience = seconds(10));
  [[nodiscard]] pid_t pid() const { return m_pid; }
  /// All log output so far.
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

/// Polls `condition` until it is true. Fails the test with `what` at the deadline.
void eventually(const std::string& what, const std::function<bool()>& condition, milliseconds patience = seconds(10));

}  // namespace dockbridge::test
