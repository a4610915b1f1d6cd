#include <fmt/format.h>

#include <functional>
#include <stdexcept>

#include "figures.hpp"

namespace dockbridge::bench {

namespace {

constexpr int k_starts = 20;
constexpr int k_tool_starts = 10;
constexpr Samples::Duration k_answer_bound{30};
constexpr Samples::Duration k_tool_bound{150};

/// Time from the start of the process to the end of `until`. The end of the process does not count.
Samples::Duration timed_start(const Launch& launch, const std::function<void(Server&)>& until) {
  const auto began = Clock::now();
  Server server(launch);
  until(server);
  return Clock::now() - began;
}

void exchange(Server& server, const std::string& request) {
  server.send(request);
  if (const std::string answer = server.receive(); !json::parse(answer).contains("result")) {
    throw std::runtime_error("no result: " + answer);
  }
}

Figure start_figure(const std::string& what, const Samples& samples, Samples::Duration bound) {
  return {fmt::format("start to {} (median of {})", what, samples.count()),
          fmt::format("{:.1f} ms (p90 {:.1f})", samples.median().count(), samples.p90().count()),
          fmt::format("<= {:.0f} ms", bound.count()), samples.median() <= bound};
}

Figure measure_first_answer(const Setting& setting, const std::string& method, const std::string& request) {
  Samples samples;
  for (int i = 0; i < k_starts; ++i) {
    samples.add(timed_start(setting.launch, [&](Server& server) { exchange(server, request); }));
  }
  return start_figure("the answer to " + method, samples, k_answer_bound);
}

Figure measure_first_tool_result(const Setting& setting) {
  Samples samples;
  for (int i = 0; i < k_tool_starts; ++i) {
    samples.add(timed_start(setting.launch, [](Server& server) {
      server.initialize();
      server.execute("true");
    }));
  }
  return start_figure("the first tool result", samples, k_tool_bound);
}

}  // namespace

std::vector<Figure> measure_startup(const Setting& setting) {
  return {measure_first_answer(setting, "initialize", initialize_request()),
          measure_first_answer(setting, "server/discover", stateless_request("server/discover")),
          measure_first_answer(setting, "tools/list", stateless_request("tools/list")),
          measure_first_tool_result(setting)};
}

}  // namespace dockbridge::bench
