// Python sessions: the time of cells, one-off runs and starts, memory, and large results.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "container.hpp"
#include "interruption.hpp"
#include "proc.hpp"
#include "server.hpp"
#include "table.hpp"

using namespace dockbridge;
using namespace dockbridge::bench;

namespace {

constexpr const char* k_bare_spawn_path = "/bare_spawn";
constexpr const char* k_python = "/usr/bin/python3";
constexpr seconds k_time_allowed{240};

constexpr double k_max_cell_times_command = 1.0;
constexpr Samples::Duration k_max_round_trip{0.2};
constexpr double k_max_cold_times_bare = 1.4;
constexpr double k_max_warm_times_bare = 0.6;
constexpr Samples::Duration k_max_warm_session{5};
constexpr int k_sessions = 16;
constexpr std::int64_t k_max_session_bytes = 15LL * 1024 * 1024;
constexpr std::uint64_t k_printed_bytes = 100'000'000;
constexpr std::uint64_t k_max_growth = 16ULL * 1024 * 1024;
constexpr std::size_t k_image_bytes = 5'000'000;
constexpr std::size_t k_max_sent_image = 1024UL * 1024;

/// The time that the agent needs to start the next warm interpreter.
constexpr milliseconds k_refill_pause{300};

struct Bench {
  const Container& container;
  std::string program;

  [[nodiscard]] Launch launch(const std::vector<std::string>& more = {}) const {
    Launch launch{program, {"--container-name", container.name(), "--no-create", "--log-level", "warn"}};
    launch.arguments.insert(launch.arguments.end(), {"--python-sessions", "1000", "--python-ipython", "never"});
    launch.arguments.insert(launch.arguments.end(), more.begin(), more.end());
    return launch;
  }
  /// Starts of `python3 -c CODE` by a program in the container.
  void add_bare(const std::string& code, int count, Samples& samples) const {
    std::istringstream lines(
        run(container.exec_command({k_bare_spawn_path, "--quiet", std::to_string(count), k_python, "-c", code})));
    for (double nanoseconds = 0; lines >> nanoseconds;) {
      samples.add(std::chrono::duration<double, std::nano>(nanoseconds));
    }
  }
};

json result_of(const std::string& answer) {
  json result = json::parse(answer).value("result", json::object());
  if (result.value("isError", true)) {
    throw std::runtime_error("a call failed: " + answer.substr(0, 2000));
  }
  return result;
}

std::string python_request(int id, const std::string& code, const std::string& session = "", bool reset = false) {
  json arguments = {{"code", code}};
  if (!session.empty()) {
    arguments["session"] = session;
  }
  if (reset) {
    arguments["reset"] = true;
  }
  return call_request(id, "python", std::move(arguments));
}

json python(Server& server, const std::string& code, const std::string& session = "") {
  server.send(python_request(1, code, session));
  return result_of(server.receive());
}

/// Ends a session.
void end_session(Server& server, const std::string& session) {
  server.send(call_request(1, "python", {{"session", session}, {"reset", true}}));
  result_of(server.receive());
}

Samples::Duration timed(Server& server, const std::string& request) {
  const auto began = Clock::now();
  server.send(request);
  const std::string answer = server.receive();
  const Samples::Duration took = Clock::now() - began;
  result_of(answer);
  return took;
}

Figure ratio_figure(const std::string& what, const Samples& samples, const Samples& reference, double bound) {
  const double ratio = samples.median() / reference.median();
  return {fmt::format("{} (median of {})", what, samples.count()),
          fmt::format("{:.2f}x ({:.2f} / {:.2f} ms)", ratio, samples.median().count(), reference.median().count()),
          fmt::format("<= {:.1f}x", bound), ratio <= bound};
}

std::vector<Figure> measure_cells(const Bench& bench) {
  Server server(bench.launch());
  server.initialize();
  python(server, "1", "main");
  const std::string cell = python_request(1, "1+1", "main");
  const std::string command = execute_request(1, "true");
  Samples cells;
  Samples commands;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 50; ++i) {
      const auto took = timed(server, cell);
      if (round > 0) {
        cells.add(took);
      }
    }
    for (int i = 0; i < 50; ++i) {
      const auto took = timed(server, command);
      if (round > 0) {
        commands.add(took);
      }
    }
  }
  end_session(server, "main");
  return {ratio_figure("cell '1+1' / execute_command 'true'", cells, commands, k_max_cell_times_command)};
}

/// Starts the installed driver as a keeper does, sends cells over a socket, and prints the median in milliseconds.
constexpr const char* k_driver_client = R"(
import glob, os, socket, statistics, subprocess, sys, time
directory = [path for place in ('/var/lib/dockbridge/state/*', '/tmp/.dockbridge-*', '/run/.dockbridge-*')
             for path in glob.glob(place + '/drivers_*')][0]
host, channel = socket.socketpair()
start = 'import sys; sys.path.insert(0, sys.argv[1]); import dockbridge_driver'
driver = subprocess.Popen([sys.executable, '-c', start, directory], close_fds=False,
                          preexec_fn=lambda: os.dup2(channel.fileno(), 3))
def wait_for(event):
    received = b''
    while event not in received:
        received += host.recv(65536)
wait_for(b'"ready"')
times = []
for cell in range(1, 1001):
    request = b'{"op":"run","cell":%d,"code":"1+1"}\n' % cell
    began = time.perf_counter()
    host.sendall(request)
    wait_for(b'"end"')
    times.append(time.perf_counter() - began)
driver.kill()
print(statistics.median(times) * 1000)
)";

std::vector<Figure> measure_driver(const Bench& bench) {
  Server server(bench.launch());
  server.initialize();
  python(server, "1");  // installs the driver
  const Samples::Duration median(std::stod(run(bench.container.exec_command({k_python, "-c", k_driver_client}))));
  return {{"round trip of a cell '1+1' to the driver (median of 1000)", fmt::format("{:.3f} ms", median.count()),
           fmt::format("<= {:.1f} ms", k_max_round_trip.count()), median <= k_max_round_trip}};
}

std::vector<Figure> measure_starts(const Bench& bench, bool is_warm) {
  const std::string name = is_warm ? "warm" : "cold";
  Server server(bench.launch({"--python-warm", is_warm ? "1" : "0"}));
  server.initialize();
  const auto pause = [&] {
    if (is_warm) {
      std::this_thread::sleep_for(k_refill_pause);
    }
  };
  const int rounds = is_warm ? 40 : 30;
  Samples one_offs;
  Samples sessions;
  Samples bare;
  python(server, "1");
  for (int i = 0; i < rounds; ++i) {
    pause();
    one_offs.add(timed(server, python_request(1, "print(1)")));
    pause();
    const std::string session = fmt::format("{}{}", name, i);
    sessions.add(timed(server, python_request(1, "1", session)));
    end_session(server, session);
    if (i % 5 == 0) {
      bench.add_bare("print(1)", 5, bare);
    }
  }
  std::vector<Figure> figures = {ratio_figure(fmt::format("one-off 'print(1)', {} / bare python3 -c", name), one_offs,
                                              bare, is_warm ? k_max_warm_times_bare : k_max_cold_times_bare)};
  if (is_warm) {
    figures.push_back({fmt::format("new session, warm (median of {})", sessions.count()),
                       fmt::format("{:.2f} ms (p90 {:.2f})", sessions.median().count(), sessions.p90().count()),
                       fmt::format("<= {:.0f} ms", k_max_warm_session.count()),
                       sessions.median() <= k_max_warm_session});
  } else {
    figures.push_back(ratio_figure("new session, cold / bare python3 -c", sessions, bare, k_max_cold_times_bare));
  }
  return figures;
}

/// Private memory of the process that runs it, in KiB.
constexpr const char* k_private_memory =
    "print(sum(int(line.split()[1]) for line in open('/proc/self/smaps_rollup') if line.startswith('Private')))";

std::vector<Figure> measure_sessions(const Bench& bench) {
  constexpr int k_cells = 20;
  Server server(bench.launch());
  server.initialize();
  int errors = 0;
  for (int cell = 0; cell < k_cells; ++cell) {
    for (int i = 0; i < k_sessions; ++i) {
      const std::string code = cell == 0 ? fmt::format("mine = {}; seen = []", i)
                                         : fmt::format("seen.append({}); print(mine, len(seen))", cell);
      server.send(python_request(i, code, fmt::format("s{}", i)));
    }
    for (int i = 0; i < k_sessions; ++i) {
      const std::string answer = server.receive();
      const int id = json::parse(answer).value("id", -1);
      const json result = result_of(answer);
      errors +=
          cell > 0 && result.at("structuredContent").value("stdout", "") != fmt::format("{} {}\n", id, cell) ? 1 : 0;
    }
  }
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < k_sessions; ++i) {
    const json result = python(server, k_private_memory, fmt::format("s{}", i));
    sizes.push_back(std::stoll(result.at("structuredContent").value("stdout", "")));
  }
  const json alone = server.execute(fmt::format("{} -c \"{}\"", k_python, k_private_memory));
  const std::int64_t bare = std::stoll(alone.at("structuredContent").value("stdout", ""));
  const std::int64_t most = (*std::max_element(sizes.begin(), sizes.end()) - bare) * 1024;
  for (int i = 0; i < k_sessions; ++i) {
    end_session(server, fmt::format("s{}", i));
  }
  return {{fmt::format("{} sessions at once, {} cells each: wrong results", k_sessions, k_cells),
           std::to_string(errors), "0", errors == 0},
          {"private memory of a session over a bare interpreter (largest)", in_kibibytes(most),
           "<= " + in_kibibytes(k_max_session_bytes), most <= k_max_session_bytes}};
}

std::vector<Figure> measure_output(const Bench& bench) {
  Server server(bench.launch());
  server.initialize();
  const json warm_up = python(server, "print('x' * 1000000)", "flood");
  const auto before = warm_up.at("structuredContent").value("stdoutBytes", std::uint64_t{0});
  const pid_t session = bench.container.pid_of(k_session_name);
  const std::uint64_t server_before = peak_resident_bytes(server.pid());
  const std::uint64_t session_before = peak_resident_bytes(session);
  const json result =
      python(server, fmt::format("for _ in range({}): print('y' * 999999)", k_printed_bytes / 1'000'000), "flood");
  const auto total = result.at("structuredContent").value("stdoutBytes", std::uint64_t{0}) - before;
  const auto growth = [](std::uint64_t from, std::uint64_t to) { return to - std::min(from, to); };
  const std::uint64_t server_growth = growth(server_before, peak_resident_bytes(server.pid()));
  const std::uint64_t session_growth = growth(session_before, peak_resident_bytes(session));
  end_session(server, "flood");
  return {{"100 MB printed in a cell: bytes counted", std::to_string(total), std::to_string(k_printed_bytes),
           total == k_printed_bytes},
          {"  growth of the server, of the session (peak resident)",
           in_mebibytes(server_growth) + ", " + in_mebibytes(session_growth), "< " + in_mebibytes(k_max_growth),
           server_growth < k_max_growth && session_growth < k_max_growth}};
}

/// Noise, so that it cannot be compressed.
constexpr const char* k_noise_image = R"(
import hashlib, os, struct, zlib
def part(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
side = 1300
rows = b''.join(b'\0' + os.urandom(3 * side) for _ in range(side))
data = (b'\x89PNG\r\n\x1a\n' + part(b'IHDR', struct.pack('>IIBBBBB', side, side, 8, 2, 0, 0, 0))
        + part(b'IDAT', zlib.compress(rows, 1)) + part(b'IEND', b''))
class Noise:
    def _repr_png_(self):
        return data
print(len(data), hashlib.sha256(data).hexdigest())
Noise()
)";

std::vector<Figure> measure_image(const Bench& bench) {
  Server server(bench.launch());
  server.initialize();
  const auto began = Clock::now();
  const json result = python(server, k_noise_image, "image");
  const Samples::Duration took = Clock::now() - began;
  std::istringstream printed(result.at("structuredContent").value("stdout", ""));
  std::size_t bytes = 0;
  std::string digest;
  printed >> bytes >> digest;
  std::size_t sent = 0;
  std::string texts;
  for (const json& block : result.at("content")) {
    sent = std::max(sent, block.value("data", "").size() / 4 * 3);
    texts += block.value("text", "");
  }
  const json found = server.execute(fmt::format("sha256sum figures/* | grep -c {}", digest));
  const std::string count = found.at("structuredContent").value("stdout", "");
  const bool is_named = texts.find("figures/") != std::string::npos;
  end_session(server, "image");
  return {
      {fmt::format("PNG of {:.1f} MB as a value: intact file in the workdir, named", static_cast<double>(bytes) / 1e6),
       fmt::format("{}, {}, {:.0f} ms", count == "1\n" ? "intact" : "not found", is_named ? "named" : "not named",
                   took.count()),
       "intact, named", bytes >= k_image_bytes && count == "1\n" && is_named},
      {"  the scaled copy in the reply", fmt::format("{} bytes", sent), fmt::format("1 to {} bytes", k_max_sent_image),
       sent > 0 && sent <= k_max_sent_image}};
}

using Measure = std::vector<Figure> (*)(const Bench&);
struct Measurement {
  const char* name;
  Measure measure;
};
constexpr Measurement k_measurements[] = {
    {"cells", measure_cells},
    {"driver", measure_driver},
    {"warm starts", [](const Bench& bench) { return measure_starts(bench, true); }},
    {"cold starts", [](const Bench& bench) { return measure_starts(bench, false); }},
    {"sessions at once", measure_sessions},
    {"printed output", measure_output},
    {"image", measure_image},
};

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string program = here / "dockbridge";
  std::string image = "dockbridge-test:slim";
  CLI::App app{"Measures Python sessions. Exits with 0 if every bound is met.", "dockbridge-python-bench"};
  app.add_option("PROGRAM", program, "dockbridge program to measure")->capture_default_str()->check(CLI::ExistingFile);
  app.add_option("--image", image, "image of the container")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  unwind_on_signals(k_time_allowed);
  try {
    const Container container(image);
    container.copy_in(here / "bare_spawn", k_bare_spawn_path);
    const Bench bench{container, program};
    std::vector<Figure> figures;
    for (const auto& [name, measure] : k_measurements) {
      fmt::print(stderr, "measuring {} ...\n", name);
      try {
        const auto measured = measure(bench);
        figures.insert(figures.end(), measured.begin(), measured.end());
      } catch (const Interrupted&) {
        throw;
      } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        figures.push_back({name, "failed, see above", "", false});
      }
    }
    print_table(figures);
    return std::all_of(figures.begin(), figures.end(), [](const Figure& figure) { return figure.met; }) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "dockbridge-python-bench: {}\n", error.what());
    return 2;
  }
}
