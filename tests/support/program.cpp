#include "support/program.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "util/json_text.hpp"

namespace dockbridge::test {

namespace {

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

/// Forks and execs with the given standard descriptors; variables with an empty value are removed.
pid_t spawn(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment, int in,
            int out, int err) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    for (const auto& [name, value] : environment) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
  }
  return pid;
}

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string program_path() {
  const char* path = std::getenv("DOCKBRIDGE_PROGRAM");
  REQUIRE_MESSAGE(path != nullptr, "DOCKBRIDGE_PROGRAM is not set; run the tests with ctest");
  return path;
}

Finished run(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
             milliseconds patience) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t pid = spawn(argv, environment, nothing.get(), out.write_end.get(), err.write_end.get());
  out.write_end.reset();
  err.write_end.reset();
  Finished finished;
  const auto deadline = Deadline::after(patience);
  while (out.read_end || err.read_end) {
    std::array<pollfd, 2> polled = {pollfd{out.read_end.get(), POLLIN, 0}, pollfd{err.read_end.get(), POLLIN, 0}};
    ::poll(polled.data(), polled.size(), static_cast<int>(deadline.remaining().count()));
    if (deadline.passed()) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      FAIL("'" << argv.front() << "' did not end in time");
    }
    std::array<char, 16384> buffer{};
    const auto take = [&](Fd& fd, short revents, std::string& into) {
      if (revents != 0) {
        const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        got > 0 ? static_cast<void>(into.append(buffer.data(), static_cast<std::size_t>(got))) : fd.reset();
      }
    };
    take(out.read_end, polled[0].revents, finished.out);
    take(err.read_end, polled[1].revents, finished.err);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

std::string run_ok(const std::vector<std::string>& argv) {
  Finished finished = run(argv, {}, seconds(120));
  std::string line;
  for (const std::string& argument : argv) {
    line += argument + " ";
  }
  REQUIRE_MESSAGE(finished.exit_code == 0, line << "failed: " << finished.err);
  if (finished.out.ends_with('\n')) {
    finished.out.pop_back();
  }
  return finished.out;
}

Server::Server(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
               const std::vector<std::string>& prefix) {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  std::string log = "/tmp/dockbridge-test-log-XXXXXX";
  const Fd log_file(::mkostemp(log.data(), O_CLOEXEC));
  REQUIRE(log_file);
  m_log_path = log;
  std::vector<std::string> argv = prefix;
  argv.push_back(program_path());
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  // The config file of the user who runs the tests must not be read. Tests check fields and texts.
  std::map<std::string, std::string> variables = {{"XDG_CONFIG_HOME", "/nonexistent"}, {"DOCKBRIDGE_STRUCTURED", "on"}};
  for (const auto& [name, value] : environment) {
    variables[name] = value;
  }
  m_pid = spawn(argv, variables, in.read_end.get(), out.write_end.get(), log_file.get());
  m_in = std::move(in.write_end);
  m_out = std::move(out.read_end);
}

Server::~Server() {
  if (m_pid > 0) {
    ::kill(m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
  ::unlink(m_log_path.c_str());
}

void Server::send(const json& message) {
  send_raw(json_text(message) + "\n");  // the serializer of the library takes minutes for 100 MiB under a sanitizer
}

void Server::send_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(m_in.get(), bytes.data(), bytes.size());
    REQUIRE(written > 0);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Reads once; returns false on a timeout. The end of the stream fails the test.
bool Server::fill(milliseconds patience) {
  pollfd polled{m_out.get(), POLLIN, 0};
  if (::poll(&polled, 1, static_cast<int>(patience.count())) <= 0) {
    return false;
  }
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(m_out.get(), buffer.data(), buffer.size());
  REQUIRE_MESSAGE(got > 0, "the server closed its output; its log: " << log());
  m_buffer.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

json Server::receive(milliseconds patience) {
  const auto deadline = Deadline::after(patience);
  std::size_t end = 0;
  while ((end = m_buffer.find('\n')) == std::string::npos) {
    REQUIRE_MESSAGE(fill(deadline.remaining()), "no answer within " << patience.count() << " ms; log: " << log());
  }
  json message = json::parse(m_buffer.substr(0, end));
  m_buffer.erase(0, end + 1);
  return message;
}

json Server::receive_answer(const json& id, milliseconds patience) {
  const auto is_it = [&](const json& message) {
    return message.contains("id") && message.at("id") == id && !message.contains("method");
  };
  if (const auto earlier = std::find_if(seen.begin(), seen.end(), is_it); earlier != seen.end()) {
    json message = std::move(*earlier);
    seen.erase(earlier);
    return message;
  }
  const auto deadline = Deadline::after(patience);
  while (true) {
    json message = receive(deadline.remaining());
    if (is_it(message)) {
      return message;
    }
    seen.push_back(std::move(message));
  }
}

bool Server::stays_silent(milliseconds span) {
  return m_buffer.empty() && !fill(span);
}

int Server::send_request(const std::string& method, const json& params) {
  const int id = m_next_id++;
  send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
  return id;
}

json Server::request(const std::string& method, const json& params, milliseconds patience) {
  return receive_answer(send_request(method, params), patience);
}

void Server::initialize(const std::string& version) {
  const json answer = request("initialize", {{"protocolVersion", version},
                                             {"capabilities", json::object()},
                                             {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
  REQUIRE(answer.contains("result"));
  send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
}

int Server::start_call(const std::string& tool, json arguments, const json& meta) {
  arguments["rationale"] = "a test";
  json params = {{"name", tool}, {"arguments", std::move(arguments)}};
  if (!meta.is_null()) {
    params["_meta"] = meta;
  }
  return send_request("tools/call", params);
}

json Server::call(const std::string& tool, json arguments, milliseconds patience) {
  const json answer = receive_answer(start_call(tool, std::move(arguments)), patience);
  REQUIRE_MESSAGE(answer.contains("result"), answer.dump());
  return answer.at("result");
}

json Server::execute(const std::string& command, json more) {
  more["command"] = command;
  return call("execute_command", std::move(more));
}

void Server::signal(int number) const {
  ::kill(m_pid, number);
}

int Server::wait_for_exit(milliseconds patience) {
  int status = 0;
  eventually(
      "the server ends", [&] { return ::waitpid(m_pid, &status, WNOHANG) == m_pid; }, patience);
  m_pid = -1;
  return status;
}

std::string Server::log() {
  return read_whole(m_log_path);
}

void eventually(const std::string& what, const std::function<bool()>& condition, milliseconds patience) {
  const auto deadline = Deadline::after(patience);
  while (!condition()) {
    REQUIRE_MESSAGE(!deadline.passed(), "not within " << patience.count() << " ms: " << what);
    ::poll(nullptr, 0, 5);
  }
}

}  // namespace dockbridge::test
