#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "child.hpp"

namespace dockbridge::bench {

using nlohmann::json;

constexpr milliseconds k_answer_patience{20'000};

/// Command line of the measured server.
struct Launch {
  std::string program;
  std::vector<std::string> arguments;
};

/// A running dockbridge and the client's end of its stdio. The destructor ends it by closing its input.
class Server {
 public:
  explicit Server(const Launch& launch);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] pid_t pid() const { return m_child.pid(); }

  void send(std::string_view line) const;
  /// The next line from the server. Throws, with its log, if none arrives in time.
  std::string receive(Deadline deadline = Deadline::after(k_answer_patience));
  /// Whether a line, or a part of one, is there within `span`.
  [[nodiscard]] bool has_answer(milliseconds span) const;

  /// The handshake, from `initialize` to the notification that ends it.
  void initialize();
  /// Runs a command with execute_command; returns the result, and throws unless the command exited with 0.
  json execute(const std::string& command);

 private:
  [[nodiscard]] std::string log() const;

  Pipe m_to_server;
  Pipe m_from_server;
  Fd m_log;
  Child m_child;
  std::string m_buffer;
};

std::string initialize_request();
/// A request of the stateless revision, which needs no handshake.
std::string stateless_request(const std::string& method);
std::string call_request(int id, const std::string& tool, json arguments);
std::string execute_request(int id, const std::string& command, json more = json::object());
/// The tool result in an answer. Throws if it is an error, or the command did not exit with 0.
json success_of(const std::string& answer);

}  // namespace dockbridge::bench
