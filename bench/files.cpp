#include <fmt/format.h>

#include <stdexcept>

#include "figures.hpp"
#include "proc.hpp"

namespace dockbridge::bench {

namespace {

constexpr int k_file_warm_up_calls = 20;
constexpr int k_calls = 300;
constexpr int k_lines = 1000;
constexpr int k_entries = 100;
constexpr int k_many_entries = 100'000;
/// Names of a few files. Removing many files would make creating one slow for minutes on ext4 without a journal, and so
/// distort the next run.
constexpr const char* k_make_many = R"(mkdir -p /bench/many && cd /bench/many && python3 -c '
import os
for i in range({}):
    if i % 50000 == 0:
        first = str(i)
        open(first, "w").close()
    else:
        os.link(first, str(i))
')";
constexpr int k_many_entries_runs = 15;

constexpr Samples::Duration k_look_bound{1};
constexpr Samples::Duration k_change_bound{2};
constexpr Samples::Duration k_many_entries_bound{150};
constexpr const char* k_worker_name = "dockbridge-file";

/// The answer of a tool and its duration. Throws if it is an error.
json timed_call(Server& server, const std::string& tool, json arguments, Samples& samples) {
  const std::string request = call_request(1, tool, std::move(arguments));
  const auto began = Clock::now();
  server.send(request);
  const std::string answer = server.receive();
  samples.add(Clock::now() - began);
  json result = json::parse(answer).value("result", json::object());
  if (result.value("isError", true)) {
    throw std::runtime_error(tool + ": " + answer.substr(0, 1000));
  }
  return result;
}

Figure within(const std::string& what, const Samples& samples, Samples::Duration bound) {
  return {fmt::format("{} (median of {})", what, samples.count()),
          fmt::format("{:.2f} ms (p90 {:.2f})", samples.median().count(), samples.p90().count()),
          fmt::format("<= {:.0f} ms", bound.count()), samples.median() <= bound};
}

std::string lines_of_text(int number) {
  std::string text;
  for (int i = 0; i < k_lines; ++i) {
    text += fmt::format("line {} of a file that is about as wide as code is, number {}\n", i, number);
  }
  return text;
}

/// Runs `call` repeatedly. The first runs do not count.
template <typename Call>
Samples repeated(int count, Call call) {
  Samples counted;
  Samples ignored;
  for (int i = -k_file_warm_up_calls; i < count; ++i) {
    call(i + k_file_warm_up_calls, i < 0 ? ignored : counted);
  }
  return counted;
}

}  // namespace

std::vector<Figure> measure_files(const Setting& setting) {
  Server server(setting.launch);
  server.initialize();
  server.execute(fmt::format("mkdir -p /bench/few && cd /bench/few && seq {} | xargs touch", k_entries));
  const std::string path = "/bench/file.txt";
  Samples first;
  timed_call(server, "file_write", {{"filePath", path}, {"content", lines_of_text(0)}}, first);

  const Samples reads = repeated(k_calls, [&](int, Samples& samples) {
    timed_call(server, "file_read", {{"filePath", path}, {"limit", 1000}}, samples);
  });
  const Samples edits = repeated(k_calls, [&](int i, Samples& samples) {
    timed_call(server, "file_edit",
               {{"filePath", path},
                {"oldString", fmt::format("line 500 of a file that is about as wide as code is, number {}\n", i)},
                {"newString", fmt::format("line 500 of a file that is about as wide as code is, number {}\n", i + 1)}},
               samples);
  });
  const Samples writes = repeated(k_calls, [&](int i, Samples& samples) {
    timed_call(server, "file_write", {{"filePath", path}, {"content", lines_of_text(i + 1)}}, samples);
  });
  const Samples lists = repeated(k_calls, [&](int, Samples& samples) {
    timed_call(server, "file_ls", {{"path", "/bench/few"}}, samples);
  });
  const Samples detailed_lists = repeated(k_calls, [&](int, Samples& samples) {
    timed_call(server, "file_ls", {{"path", "/bench/few"}, {"details", true}}, samples);
  });
  server.execute("rm -r /bench");
  return {within("file_read of 1,000 lines", reads, k_look_bound), within("file_edit of it", edits, k_change_bound),
          within("file_write of it", writes, k_change_bound), within("file_ls of 100 entries", lists, k_look_bound),
          within("  with details", detailed_lists, k_look_bound)};
}

std::vector<Figure> measure_large_files(const Setting& setting) {
  Server server(setting.launch);
  server.initialize();
  server.execute(fmt::format(k_make_many, k_many_entries));
  Samples lists;
  for (int i = 0; i < k_many_entries_runs; ++i) {
    timed_call(server, "file_ls", {{"path", "/bench/many"}}, lists);
  }
  server.execute("cd /bench && yes 'a line of a file that is very large' | head -c 1G > large && rm -r many");
  Samples looks;
  timed_call(server, "file_read", {{"filePath", "/bench/large"}, {"offset", 20'000'000}}, looks);
  timed_call(server, "file_read", {{"filePath", "/bench/large"}, {"offset", -10}}, looks);
  timed_call(server, "file_grep", {{"pattern", "very larg[e]"}, {"path", "/bench/large"}}, looks);
  std::vector<Figure> figures = {
      within(fmt::format("file_ls of {} entries", k_many_entries), lists, k_many_entries_bound),
      {"1 GiB file: read from the middle and the end, searched",
       fmt::format("{:.0f} ms at most", looks.worst().count()), "", true},
      peak_figure("server", peak_resident_bytes(server.pid())),
      peak_figure("session", peak_resident_bytes(setting.container.pid_of(k_session_name))),
      peak_figure("file worker", peak_resident_bytes(setting.container.pid_of(k_worker_name)))};
  server.execute("rm -r /bench");
  return figures;
}

}  // namespace dockbridge::bench
