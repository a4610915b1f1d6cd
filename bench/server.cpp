#include "server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <exception>
#include <stdexcept>

namespace dockbridge::bench {

namespace {

constexpr milliseconds k_goodbye_patience{3'000};
constexpr std::size_t k_shown_log_bytes = 2000;
constexpr const char* k_handshake_version = "2025-11-25";
constexpr const char* k_stateless_version = "2026-07-28";

/// The environment without settings of the user, which could affect the result.
std::vector<std::string> server_environment() {
  auto variables = own_environment();
  std::erase_if(variables, [](const std::string& variable) {
    return variable.starts_with("DOCKBRIDGE_") || variable.starts_with("XDG_CONFIG_HOME=");
  });
  variables.emplace_back("XDG_CONFIG_HOME=/nonexistent");
  return variables;
}

std::vector<std::string> command_line(const Launch& launch) {
  std::vector<std::string> argv = {launch.program};
  argv.insert(argv.end(), launch.arguments.begin(), launch.arguments.end());
  argv.insert(argv.end(), {"--structured", "on"});  // the figures are read from the fields
  return argv;
}

std::string request(int id, const std::string& method, json params) {
  return json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}}.dump();
}

}  // namespace

Server::Server(const Launch& launch)
    : m_to_server(make_pipe()),
      m_from_server(make_pipe()),
      m_log(::memfd_create("dockbridge-log", MFD_CLOEXEC)),
      m_child(command_line(launch), server_environment(),
              {m_to_server.read_end.get(), m_from_server.write_end.get(), m_log.get()}) {
  m_to_server.read_end.reset();
  m_from_server.write_end.reset();
}

Server::~Server() {
  m_to_server.write_end.reset();
  try {
    m_child.wait(Deadline::after(k_goodbye_patience));
  } catch (const std::exception& error) {
    fmt::print(stderr, "dockbridge-bench: killing the server: {}\n", error.what());
  }
}

void Server::send(std::string_view line) const {
  std::string bytes(line);
  bytes += '\n';
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t written = ::write(m_to_server.write_end.get(), left.data(), left.size());
    if (written < 0 && errno != EINTR) {
      throw std::runtime_error("the server does not read. Log: " + log());
    }
    left.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
}

std::string Server::receive(Deadline deadline) {
  std::array<char, 65536> buffer;
  std::size_t end = 0;
  while ((end = m_buffer.find('\n')) == std::string::npos) {
    if (!await_readable(m_from_server.read_end.get(), deadline)) {
      throw std::runtime_error("no answer from the server. Log: " + log());
    }
    const ssize_t got = ::read(m_from_server.read_end.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      throw std::runtime_error("the server has ended. Log: " + log());
    }
    m_buffer.append(buffer.data(), static_cast<std::size_t>(got));
  }
  std::string line = m_buffer.substr(0, end);
  m_buffer.erase(0, end + 1);
  return line;
}

bool Server::has_answer(milliseconds span) const {
  return !m_buffer.empty() || await_readable(m_from_server.read_end.get(), Deadline::after(span));
}

void Server::initialize() {
  send(initialize_request());
  if (!json::parse(receive()).contains("result")) {
    throw std::runtime_error("the server rejected initialize");
  }
  send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
}

json Server::execute(const std::string& command) {
  send(execute_request(1, command));
  return success_of(receive());
}

std::string Server::log() const {
  std::string text(k_shown_log_bytes, '\0');
  const ssize_t got = ::pread(m_log.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string initialize_request() {
  return request(0, "initialize",
                 {{"protocolVersion", k_handshake_version},
                  {"capabilities", json::object()},
                  {"clientInfo", {{"name", "dockbridge-bench"}, {"version", "1"}}}});
}

std::string stateless_request(const std::string& method) {
  return request(0, method,
                 {{"_meta",
                   {{"io.modelcontextprotocol/protocolVersion", k_stateless_version},
                    {"io.modelcontextprotocol/clientCapabilities", json::object()}}}});
}

std::string call_request(int id, const std::string& tool, json arguments) {
  arguments["rationale"] = "measure dockbridge";
  return request(id, "tools/call", {{"name", tool}, {"arguments", std::move(arguments)}});
}

std::string execute_request(int id, const std::string& command, json more) {
  more["command"] = command;
  return call_request(id, "execute_command", std::move(more));
}

json success_of(const std::string& answer) {
  const json message = json::parse(answer);
  const json result = message.value("result", json::object());
  const json structured = result.value("structuredContent", json::object());
  if (result.value("isError", true) || structured.value("exitCode", -1) != 0) {
    throw std::runtime_error("a command failed: " + answer.substr(0, k_shown_log_bytes));
  }
  return result;
}

}  // namespace dockbridge::bench
