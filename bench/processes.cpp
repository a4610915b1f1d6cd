#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "figures.hpp"

namespace dockbridge::bench {

namespace {

constexpr int k_processes = 500;
/// Concurrent calls that a server accepts.
constexpr int k_at_once = 200;
constexpr int k_lists = 20;
constexpr int k_pattern_waits = 50;
constexpr int k_input_waits = 10;
constexpr int k_reattachments = 5;
constexpr int k_calls_beside = 100;
constexpr int k_unread_answers = 60;
constexpr double k_beside_bound = 1.5;
constexpr Samples::Duration k_list_bound{50};
constexpr Samples::Duration k_kill_bound{2000};
constexpr Samples::Duration k_pattern_bound{5};
constexpr Samples::Duration k_input_bound{1000};
constexpr Samples::Duration k_reattach_bound{1000};

json fields_of(const std::string& answer) {
  const json result = json::parse(answer).value("result", json::object());
  if (result.value("isError", true)) {
    throw std::runtime_error("a call failed: " + answer);
  }
  return result.at("structuredContent");
}

/// Makes all calls, never more at once than the server accepts. Returns the fields of their results in any order.
std::vector<json> call_all(Server& server, const std::vector<std::string>& requests) {
  std::vector<json> results;
  std::size_t sent = 0;
  while (results.size() < requests.size()) {
    while (sent < requests.size() && sent - results.size() < k_at_once) {
      server.send(requests[sent++]);
    }
    results.push_back(fields_of(server.receive()));
  }
  return results;
}

json ask(Server& server, const std::string& tool, const json& arguments) {
  server.send(call_request(1, tool, arguments));
  return fields_of(server.receive());
}

Figure figure(const std::string& what, const Samples& samples, Samples::Duration bound) {
  return {fmt::format("{} (median of {})", what, samples.count()),
          fmt::format("{:.1f} ms (worst {:.1f})", samples.median().count(), samples.worst().count()),
          fmt::format("<= {:.0f} ms", bound.count()), samples.median() <= bound};
}

}  // namespace

std::vector<Figure> measure_many_processes(const Setting& setting) {
  Server server(setting.launch);
  server.initialize();
  std::vector<std::string> starts;
  for (int i = 0; i < k_processes; ++i) {
    starts.push_back(
        call_request(i, "execute_command", {{"command", "sleep 1000"}, {"background", true}, {"timeout", 0}}));
  }
  std::vector<std::string> kills;
  for (const json& process : call_all(server, starts)) {
    kills.push_back(call_request(1 + static_cast<int>(kills.size()), "control_process",
                                 {{"processId", process.at("processId")}, {"action", "kill"}}));
  }
  Samples lists;
  for (int i = 0; i < k_lists; ++i) {
    const auto began = Clock::now();
    ask(server, "check_process", json::object());
    lists.add(Clock::now() - began);
  }
  const auto began = Clock::now();
  const auto killed = call_all(server, kills);
  const Samples::Duration took = Clock::now() - began;
  const auto gone = std::count_if(killed.begin(), killed.end(), [](const json& process) {
    return process.at("status") == "completed" && process.value("signal", "") == "SIGKILL";
  });
  return {figure(fmt::format("listing {} processes", k_processes), lists, k_list_bound),
          {fmt::format("killing {} processes", k_processes), fmt::format("{:.0f} ms, {} gone", took.count(), gone),
           fmt::format("<= {:.0f} ms, {}", k_kill_bound.count(), k_processes),
           took <= k_kill_bound && gone == k_processes}};
}

std::vector<Figure> measure_silent_client(const Setting& setting) {
  Server other(setting.launch);
  other.initialize();
  const auto time_calls = [&] {
    Samples samples;
    for (int i = 0; i < k_calls_beside; ++i) {
      const auto began = Clock::now();
      other.execute("true");
      samples.add(Clock::now() - began);
    }
    return samples;
  };
  other.execute("true");
  const Samples alone = time_calls();
  Server silent(setting.launch);
  silent.initialize();
  for (int i = 0; i < k_unread_answers; ++i) {
    silent.send(call_request(i, "execute_command",
                             {{"command", "head -c 60000 /dev/zero | tr '\\0' x"}, {"maxOutput", 100000}}));
  }
  if (!silent.has_answer(k_answer_patience)) {
    throw std::runtime_error("no reply to the client that does not read");
  }
  const Samples beside = time_calls();
  const double ratio = beside.median() / alone.median();
  return {{fmt::format("`true` beside a client with {} unread replies / alone", k_unread_answers),
           fmt::format("{:.2f} ({:.2f} / {:.2f} ms)", ratio, beside.median().count(), alone.median().count()),
           fmt::format("<= {:.1f}", k_beside_bound), ratio <= k_beside_bound}};
}

std::vector<Figure> measure_waiting(const Setting& setting) {
  Samples patterns;
  Samples inputs;
  std::string process;
  {
    Server server(setting.launch);
    server.initialize();
    // The line holds the time at which it was written.
    process = ask(server, "execute_command",
                  {{"command", "while read x; do sleep 0.02; echo mark $(date +%s%N); done"}, {"background", true}})
                  .at("processId");
    std::string cursor = "0:0";
    for (int i = 0; i < k_pattern_waits; ++i) {
      server.send(call_request(
          1, "check_process",
          {{"processId", process}, {"since", cursor}, {"waitFor", {{"pattern", "mark \\d+"}, {"input", false}}}}));
      server.send(call_request(2, "send_input", {{"processId", process}, {"input", ""}}));
      json waited;
      for (int answers = 0; answers < 2; ++answers) {
        const std::string answer = server.receive();
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        if (json::parse(answer).at("id") == 1) {
          waited = fields_of(answer);
          const std::chrono::nanoseconds written(std::stoll(waited.at("matchedLine").get<std::string>().substr(5)));
          patterns.add(now - written);
        }
      }
      cursor = fmt::format("{}:0", waited.at("stdoutBytes").get<std::uint64_t>());
    }
    for (int i = 0; i < k_input_waits; ++i) {
      const auto began = Clock::now();
      const json blocked = ask(server, "execute_command", {{"command", "cat"}});
      inputs.add(Clock::now() - began);
      if (blocked.at("returned") != "waits_for_input") {
        throw std::runtime_error("the reply does not state that the command waits for input: " + blocked.dump());
      }
      ask(server, "control_process", {{"processId", blocked.at("processId")}, {"action", "kill"}});
    }
  }
  Samples reattachments;
  for (int i = 0; i < k_reattachments; ++i) {
    const auto began = Clock::now();
    Server server(setting.launch);
    server.initialize();
    if (ask(server, "check_process", {{"processId", process}}).at("status") != "running") {
      throw std::runtime_error("the process did not survive its server");
    }
    reattachments.add(Clock::now() - began);
    if (i == k_reattachments - 1) {
      ask(server, "control_process", {{"processId", process}, {"action", "kill"}});
    }
  }
  return {figure("output of a line to the end of the wait for it", patterns, k_pattern_bound),
          figure("start of a command that reads stdin to the reply that states it", inputs, k_input_bound),
          figure("start of a server to the state of an earlier server's process", reattachments, k_reattach_bound)};
}

}  // namespace dockbridge::bench
