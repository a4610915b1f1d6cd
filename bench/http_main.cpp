// Usage: dockbridge-http-bench [PROGRAM] [SECONDS]
// Measures HTTP, compared with stdio and under load. Needs wrk for the rate of lists.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <filesystem>
#include <mutex>
#include <regex>
#include <thread>

#include "figures.hpp"
#include "http_client.hpp"
#include "interruption.hpp"
#include "proc.hpp"

using namespace dockbridge;
using namespace dockbridge::bench;

namespace {

constexpr int k_warm_up_calls = 50;
constexpr int k_rounds = 10;
constexpr int k_calls_per_round = 100;
constexpr double k_max_times_stdio = 1.5;
constexpr int k_clients = 256;
constexpr double k_least_lists_per_second = 5000;
constexpr double k_max_p99_times_p50 = 10;
constexpr std::uint64_t k_max_resident = 100ULL * 1024 * 1024;

json stateless_meta() {
  return {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
          {"io.modelcontextprotocol/clientCapabilities", json::object()}};
}

std::string http_call(int id, const std::string& command) {
  const json params = {{"name", "execute_command"},
                       {"arguments", {{"command", command}, {"rationale", "bench"}}},
                       {"_meta", stateless_meta()}};
  return json{{"jsonrpc", "2.0"}, {"id", id}, {"method", "tools/call"}, {"params", params}}.dump();
}

Figure against_stdio(const Launch& launch, int port) {
  Server stdio(launch);
  stdio.initialize();
  HttpClient http(port);
  Samples over_stdio;
  Samples over_http;
  const std::string line = execute_request(1, "true");
  const std::string body = http_call(1, "true");
  const auto call_stdio = [&] {
    const auto began = Clock::now();
    stdio.send(line);
    const std::string answer = stdio.receive();
    const auto took = Clock::now() - began;
    success_of(answer);
    return took;
  };
  const auto call_http = [&] {
    const auto began = Clock::now();
    const std::string answer = http.post("tools/call", "execute_command", body);
    const auto took = Clock::now() - began;
    success_of(answer);
    return took;
  };
  for (int i = 0; i < k_warm_up_calls; ++i) {
    call_stdio();
    call_http();
  }
  for (int round = 0; round < k_rounds; ++round) {
    for (int i = 0; i < k_calls_per_round; ++i) {
      over_stdio.add(call_stdio());
    }
    for (int i = 0; i < k_calls_per_round; ++i) {
      over_http.add(call_http());
    }
  }
  const double times = over_http.median() / over_stdio.median();
  return {fmt::format("execute_command 'true' over HTTP / stdio (median of {})", over_http.count()),
          fmt::format("{:.2f}x ({:.2f} ms, p90 {:.2f} / {:.2f} ms, p90 {:.2f})", times, over_http.median().count(),
                      over_http.p90().count(), over_stdio.median().count(), over_stdio.p90().count()),
          fmt::format("<= {:.1f}x", k_max_times_stdio), times <= k_max_times_stdio};
}

Figure lists_per_second(int port) {
  const std::filesystem::path script = std::filesystem::temp_directory_path() / "dockbridge-lists.lua";
  const json body = {
      {"jsonrpc", "2.0"}, {"id", 1}, {"method", "tools/list"}, {"params", {{"_meta", stateless_meta()}}}};
  Fd file(::open(script.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const std::string lua = fmt::format(
      "wrk.method = 'POST'\nwrk.body = '{}'\nwrk.headers = {{['Content-Type'] = 'application/json', ['Accept'] = "
      "'application/json, text/event-stream', ['MCP-Protocol-Version'] = '2026-07-28', ['Mcp-Method'] = "
      "'tools/list'}}\n",
      body.dump());
  (void)!::write(file.get(), lua.data(), lua.size());
  file.reset();
  const std::string report = run(
      {"wrk", "-t", "2", "-c", "32", "-d", "8s", "-s", script.string(), fmt::format("http://127.0.0.1:{}/mcp", port)});
  std::filesystem::remove(script);
  std::smatch match;
  const bool failed = report.find("Non-2xx") != std::string::npos || report.find("Socket errors") != std::string::npos;
  const double rate =
      std::regex_search(report, match, std::regex("Requests/sec: +([0-9.]+)")) ? std::stod(match[1]) : 0;
  return {"tools/list with 32 clients", fmt::format("{:.0f} a second{}", rate, failed ? ", with errors" : ""),
          fmt::format("> {:.0f}", k_least_lists_per_second), rate > k_least_lists_per_second && !failed};
}

std::vector<Figure> many_clients(int port, pid_t server, seconds span) {
  std::mutex mutex;
  std::vector<double> all;
  std::atomic<int> errors{0};
  std::atomic<int> misrouted{0};
  const auto end = Clock::now() + span;
  std::vector<std::thread> threads;
  for (int number = 0; number < k_clients; ++number) {
    threads.emplace_back([&, number] {
      try {
        HttpClient client(port);
        std::vector<double> own;
        // Ids and commands differ by client, so another client's answer would be detected.
        for (int i = 0; Clock::now() < end; ++i) {
          const std::string word = fmt::format("c{}-{}", number, i);
          const auto began = Clock::now();
          const json answer = json::parse(client.post("tools/call", "execute_command", http_call(i, "echo " + word)));
          own.push_back(Samples::Duration(Clock::now() - began).count());
          const json& result = answer.at("result");
          if (result.value("isError", false)) {
            throw std::runtime_error(result["content"][0]["text"].get<std::string>());
          }
          const bool mine = answer["id"] == i && result["structuredContent"].value("stdout", "") == word + "\n";
          misrouted += mine ? 0 : 1;
        }
        const std::lock_guard lock(mutex);
        all.insert(all.end(), own.begin(), own.end());
      } catch (const std::exception& error) {
        fmt::print(stderr, "client {}: {}\n", number, error.what());
        ++errors;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::sort(all.begin(), all.end());
  const double p50 = all.empty() ? 0 : all[all.size() / 2];
  const double p99 = all.empty() ? 0 : all[all.size() * 99 / 100];
  const std::uint64_t peak = peak_resident_bytes(server);
  return {{fmt::format("{} clients for {} s: errors, misrouted replies", k_clients, span.count()),
           fmt::format("{}, {} of {} calls", errors.load(), misrouted.load(), all.size()), "0, 0",
           errors == 0 && misrouted == 0 && !all.empty()},
          {"their p99 / p50", fmt::format("{:.1f}x ({:.0f} / {:.0f} ms)", p99 / p50, p99, p50),
           fmt::format("< {:.0f}x", k_max_p99_times_p50), p99 < k_max_p99_times_p50 * p50},
          {"peak resident memory", in_mebibytes(peak), "< 100 MiB", peak < k_max_resident}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string program = argc > 1 ? argv[1] : (here / "dockbridge").string();
  const seconds span(argc > 2 ? std::stoi(argv[2]) : 60);
  unwind_on_signals(seconds(120) + span);
  try {
    const Container container("dockbridge-test:slim");
    const int port = free_port();
    const std::vector<std::string> common = {"--container-name", container.name(), "--no-create", "--log-level",
                                             "warn"};
    std::vector<std::string> over_http = common;
    over_http.insert(over_http.end(),
                     {"--http", fmt::format("127.0.0.1:{}", port), "--no-token", "--max-rate", "1000000"});
    const Server server({program, over_http});
    std::vector<Figure> figures = {against_stdio({program, common}, port), lists_per_second(port)};
    for (const Figure& figure : many_clients(port, server.pid(), span)) {
      figures.push_back(figure);
    }
    ::kill(server.pid(), SIGTERM);  // the end of stdin ends only stdio
    print_table(figures);
    return std::all_of(figures.begin(), figures.end(), [](const Figure& figure) { return figure.met; }) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "dockbridge-http-bench: {}\n", error.what());
    return 2;
  }
}
