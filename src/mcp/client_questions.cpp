#include "mcp/client_questions.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dockbridge::mcp {

void ClientQuestions::take_answer(Answer answer) {
  const MutexLock lock(m_mutex);
  if (const auto question = m_open.find(answer.id); question != m_open.end()) {
    question->second = std::move(answer.message);
    m_answered.notify_all();
  }
}

Result<json> ClientQuestions::ask(const json& requests, ReplySink& sink, const std::stop_token& stop,
                                  Deadline deadline) {
  std::map<std::string, json> ids;
  MutexLock lock(m_mutex);
  for (const auto& [name, request] : requests.items()) {
    ids[name] = fmt::format("ask-{}", m_next++);
    m_open[ids[name]] = std::nullopt;
  }
  lock.unlock();
  for (const auto& [name, request] : requests.items()) {
    sink.send(request_message(ids[name], request.at("method").get<std::string>(), request.at("params")));
  }
  lock.lock();
  const auto all_there = [&]() REQUIRES(m_mutex) {
    return std::all_of(ids.begin(), ids.end(),
                       [&](const auto& entry) REQUIRES(m_mutex) { return m_open[entry.second].has_value(); });
  };
  const bool answered = m_answered.wait_until(lock, stop, deadline.time(), all_there);
  json answers = json::object();
  std::optional<Error> error;
  for (const auto& [name, id] : ids) {
    const auto answer = m_open[id];
    m_open.erase(id);
    if (answer && answer->contains("result")) {
      answers[name] = answer->at("result");
    } else if (answer) {
      const json refusal = answer->value("error", json::object());
      error = {ErrorCode::client_refused,
               "The client refused: " + (refusal.is_object() ? refusal.value("message", "no reason given") : "")};
    }
  }
  if (!answered) {
    return fail(ErrorCode::client_silent, "The client did not answer");
  }
  return error ? Result<json>(fail(*error)) : Result<json>(std::move(answers));
}

}  // namespace dockbridge::mcp
