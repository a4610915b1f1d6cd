#include <fmt/format.h>

#include <sstream>

#include "figures.hpp"

namespace dockbridge::bench {

namespace {

constexpr int k_warm_up_calls = 50;
// The three alternate, so that other load affects all of them alike.
constexpr int k_rounds = 10;
constexpr int k_calls_per_round = 100;
constexpr int k_docker_execs_per_round = 3;

constexpr double k_max_times_bare = 2.5;
constexpr double k_least_times_faster = 30;
constexpr double k_max_times_fresh = 1.2;

constexpr int k_parallel_calls = 16;
constexpr int k_parallel_runs = 5;
constexpr Samples::Duration k_parallel_bound{300};

Samples::Duration timed_call(Server& server, const std::string& request) {
  const auto began = Clock::now();
  server.send(request);
  const std::string answer = server.receive();
  const auto took = Clock::now() - began;
  success_of(answer);
  return took;
}

void add_bare_spawns(const std::vector<std::string>& command, Samples& samples) {
  std::istringstream lines(run(command));
  for (double nanoseconds = 0; lines >> nanoseconds;) {
    samples.add(std::chrono::duration<double, std::nano>(nanoseconds));
  }
}

Samples::Duration timed_docker_exec(const std::vector<std::string>& command) {
  const auto began = Clock::now();
  run(command);
  return Clock::now() - began;
}

/// Time from sending all commands at once to the last answer.
Samples::Duration timed_burst(Server& server, const std::string& command) {
  std::vector<std::string> requests;
  for (int id = 1; id <= k_parallel_calls; ++id) {
    requests.push_back(execute_request(id, command));
  }
  std::vector<std::string> answers;
  const auto began = Clock::now();
  for (const std::string& request : requests) {
    server.send(request);
  }
  while (answers.size() < requests.size()) {
    answers.push_back(server.receive());
  }
  const auto took = Clock::now() - began;
  for (const std::string& answer : answers) {
    success_of(answer);
  }
  return took;
}

}  // namespace

std::vector<Figure> measure_call_latency(const Setting& setting) {
  const std::string shell = setting.container.shell();
  const auto bare_command =
      setting.container.exec_command({setting.bare_spawn, std::to_string(k_calls_per_round), shell, "-c", "true"});
  const auto docker_command = setting.container.exec_command({shell, "-c", "true"});
  const std::string request = execute_request(1, "true");

  Server server(setting.launch);
  server.initialize();
  for (int i = 0; i < k_warm_up_calls; ++i) {
    timed_call(server, request);
  }
  Samples calls;
  Samples bare;
  Samples docker_execs;
  for (int round = 0; round < k_rounds; ++round) {
    add_bare_spawns(bare_command, bare);
    for (int i = 0; i < k_calls_per_round; ++i) {
      calls.add(timed_call(server, request));
    }
    for (int i = 0; i < k_docker_execs_per_round; ++i) {
      docker_execs.add(timed_docker_exec(docker_command));
    }
  }

  const double times_bare = calls.median() / bare.median();
  const double times_faster = docker_execs.median() / calls.median();
  return {{fmt::format("execute_command 'true' / bare spawn (median of {})", calls.count()),
           fmt::format("{:.2f}x ({:.2f} ms, p90 {:.2f} / {:.2f} ms, p90 {:.2f})", times_bare, calls.median().count(),
                       calls.p90().count(), bare.median().count(), bare.p90().count()),
           fmt::format("<= {:.1f}x", k_max_times_bare), times_bare <= k_max_times_bare},
          {fmt::format("docker exec 'true' (median of {}) / execute_command", docker_execs.count()),
           fmt::format("{:.1f}x ({:.1f} ms, p90 {:.1f})", times_faster, docker_execs.median().count(),
                       docker_execs.p90().count()),
           fmt::format(">= {:.0f}x", k_least_times_faster), times_faster >= k_least_times_faster}};
}

std::vector<Figure> measure_shell_calls(const Setting& setting) {
  const std::string fresh = execute_request(1, "true");
  const std::string kept = execute_request(1, "true", {{"shell", "main"}});
  Server server(setting.launch);
  server.initialize();
  for (int i = 0; i < k_warm_up_calls; ++i) {
    timed_call(server, fresh);
    timed_call(server, kept);
  }
  Samples fresh_calls;
  Samples kept_calls;
  for (int i = 0; i < k_rounds * k_calls_per_round; ++i) {
    fresh_calls.add(timed_call(server, fresh));
    kept_calls.add(timed_call(server, kept));
  }
  const double ratio = kept_calls.median() / fresh_calls.median();
  return {{fmt::format("execute_command 'true' with shell / without (median of {})", kept_calls.count()),
           fmt::format("{:.2f}x ({:.2f} ms, p90 {:.2f} / {:.2f} ms)", ratio, kept_calls.median().count(),
                       kept_calls.p90().count(), fresh_calls.median().count()),
           fmt::format("<= {:.1f}x", k_max_times_fresh), ratio <= k_max_times_fresh}};
}

std::vector<Figure> measure_concurrency(const Setting& setting) {
  Server server(setting.launch);
  server.initialize();
  server.execute("true");
  Samples bursts;
  for (int i = 0; i < k_parallel_runs; ++i) {
    bursts.add(timed_burst(server, "sleep 0.2"));
  }
  return {{fmt::format("{} x 'sleep 0.2' at once (median of {})", k_parallel_calls, bursts.count()),
           fmt::format("{:.0f} ms (worst {:.0f})", bursts.median().count(), bursts.worst().count()),
           fmt::format("< {:.0f} ms", k_parallel_bound.count()), bursts.median() < k_parallel_bound}};
}

}  // namespace dockbridge::bench
