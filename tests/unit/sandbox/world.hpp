#pragma once

#include <string>

#include "sandbox/sandbox.hpp"
#include "unit/sandbox/fake_agent.hpp"

namespace dockbridge::test {

inline const std::string k_process = "proc_1_abc";

inline Log& silent_log() {
  static Log log(-1, LogLevel::off, LogFormat::text);
  return log;
}

/// Answers start and wait with a running process, and all other requests with an empty answer.
inline void behave_well(FakeAgent& agent, const wire::Frame& request) {
  const std::string op = request.head.at("op");
  if (op == "start" || op == "wait") {
    agent.answer(request,
                 {{"process", state_of(request.head.at("process"))}, {"carried", false}, {"happened", "nothing"}});
  } else {
    agent.answer(request);
  }
}

/// A sandbox with a container whose agent a test has scripted.
struct World {
  FakeContainer container;
  sandbox::Sandbox sandbox;

  template <typename React>
  explicit World(React react, sandbox::Sandbox::Settings settings = {})
      : container(react), sandbox(container, std::move(settings), silent_log()) {}
  World() : World(behave_well) {}
};

inline sandbox::StartRequest start_request(const std::string& id = k_process) {
  sandbox::StartRequest request;
  request.id = id;
  request.command = "make";
  request.cwd = "/app";
  return request;
}

template <typename T>
std::string code_of(const Result<T>& result) {
  return result ? "success" : std::string(name_of(result.error().code));
}

inline std::string code_of_wait(sandbox::Sandbox& sandbox, const std::string& process = k_process) {
  return code_of(sandbox.processes().wait(process, milliseconds(0), {}, {}));
}

}  // namespace dockbridge::test
