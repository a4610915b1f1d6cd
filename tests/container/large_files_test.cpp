#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "support/field.hpp"
#include "support/file_tools.hpp"
#include "support/full.hpp"
#include "support/temporary_directory.hpp"
#include "util/encoding.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr const char* k_peak = "VmHWM:";
constexpr const char* k_resident = "VmRSS:";
constexpr long k_small_kib = 64L * 1024;
constexpr std::size_t k_largest_file = 100ULL * 1024 * 1024;

long kib_of(int pid, const std::string& field) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) {
      return std::stol(line.substr(field.size()));
    }
  }
  return 0;
}

std::string many_lines(std::size_t bytes, const std::string& line) {
  std::string text;
  while (text.size() + line.size() <= bytes) {
    text += line;
  }
  return text;
}

}  // namespace

TEST_CASE("large files: 10 MB are written, read and searched") {
  Files files;
  std::string content;
  for (int i = 0; content.size() < 10'000'000; ++i) {
    content += fmt::format("line {} of a large file\n", i);
  }
  const json written = files.tools.write("large", content);
  REQUIRE(done(written));
  CHECK(field(fields_of(written), "size") == content.size());
  CHECK(files.container.sh("stat -c %s /app/large") == std::to_string(content.size()));
  CHECK(field(fields_of(files.tools.read("large", {{"offset", -1}})), "revision") ==
        field(fields_of(written), "revision"));
  CHECK(field(fields_of(files.tools.grep("line 250000 of", "large")), "total") == 1);
}

TEST_CASE("large files: 100 MiB are written, and the memory is released") {
  Files files;
  const auto write = [&](const std::string& content, const json& more) {
    json arguments = {{"filePath", "large"}, {"content", content}};
    arguments.update(more);
    return files.server.call("file_write", arguments, seconds(120));
  };
  const std::string text =
      many_lines(k_largest_file, "a line of a file that is as large as a file may be, \"quoted\"\n");
  const json written = write(text, json::object());
  REQUIRE(done(written));
  CHECK(field(fields_of(written), "size") == text.size());
  CHECK(files.sh("cd /app; wc -l < large; wc -c < large; ls -A") ==
        fmt::format("{}\n{}\nlarge", std::count(text.begin(), text.end(), '\n'), text.size()));

  const std::string bytes = many_lines(k_largest_file, std::string("\0\1\2\xFF", 4));
  const json replaced = write(to_base64(bytes), {{"encoding", "base64"}});
  REQUIRE(done(replaced));
  CHECK(field(fields_of(replaced), "size") == bytes.size());
  CHECK(files.sh("head -c 8 /app/large | base64") == to_base64(bytes.substr(0, 8)));
  const json beyond = write(to_base64(bytes + "x"), {{"encoding", "base64"}});
  REQUIRE(done(beyond));
  CHECK(field(fields_of(beyond), "change") == "");
  CHECK(says(beyond, "cannot be undone"));

  std::vector<int> pids = files.container.pids_of(k_file_worker);
  pids.push_back(files.server.pid());
  for (const int pid : pids) {
    MESSAGE("peak of process ", pid, ": ", kib_of(pid, k_peak), " KiB");
    eventually("the memory is released",
               [&] { return !k_memory_is_meaningful || kib_of(pid, k_resident) < k_small_kib; });
  }
}

TEST_CASE("large files: an oversized message is rejected, and the next call works") {
  Files files;
  (void)files.sh("echo old > /app/file");
  REQUIRE(done(files.tools.read("file")));
  for (const std::size_t size : {30'000'000UL, 100'000'000UL}) {
    const std::string large(size, 'x');
    CHECK(error_code(files.server.execute("wc -c", {{"stdin", large}})) == "too_long");
    CHECK(error_code(files.server.execute(": " + large)) == "too_long");
    CHECK(error_code(files.tools.edit("file", "old", large)) == "too_long");
    CHECK(done(files.tools.read("file")));
  }
  CHECK(files.container.pids_of(k_session).size() == 1);
}

TEST_CASE("large files: over the body budget, only large calls are rejected") {
  Files files({"--init"}, "dockbridge-test:slim", {"--max-message", "16"});
  const json waiting = {{"command", "wc -c > /app/$$; sleep 60"}, {"stdin", std::string(15'000'000, 'x')}};
  const std::vector<int> ids = {files.server.start_call("execute_command", waiting),
                                files.server.start_call("execute_command", waiting)};
  eventually("both run", [&] { return files.sh("cat /app/* 2>/dev/null || true") == "15000000\n15000000"; });
  CHECK(error_code(files.server.call("execute_command", waiting)) == "too_many_calls");
  CHECK(done(files.tools.write("file", "x")));
  for (const int id : ids) {
    files.server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
  }
  eventually("calls are accepted again", [&] {
    return !files.server.execute("wc -c", {{"stdin", field(waiting, "stdin")}}).value("isError", false);
  });
}

TEST_CASE("large files: hard links and bind-mounted files are written in place") {
  const TemporaryDirectory host;
  std::ofstream(host / "mounted") << "old\n";
  Files files({"--init", "--volume", (host / "mounted").string() + ":/app/mounted"});
  (void)files.sh("cd /app && echo old > file && ln file other");
  const std::string large = many_lines(17'000'000, "a line of what is too long for one message to the agent\n");
  for (const char* path : {"file", "mounted"}) {
    CAPTURE(path);
    REQUIRE(done(files.tools.read(path)));
    const json written = files.tools.write(path, large);
    REQUIRE(done(written));
    CHECK(says(written, "written in place"));
    CHECK(files.sh(fmt::format("cd /app && wc -c < {}", path)) == std::to_string(large.size()));
  }
  CHECK(files.sh("cd /app && stat -c %h file && cmp file other && cmp file mounted && echo same") == "2\nsame");
  for (const char* path : {"file", "mounted"}) {
    REQUIRE(done(files.tools.undo(path)));
  }
  CHECK(files.sh("cat /app/other /app/mounted") == "old\nold");
  CHECK(run_ok({"cat", (host / "mounted").string()}) == "old");
  CHECK(files.is_tidy());
}

TEST_CASE("large files: written in place if the directory accepts no file") {
  Files files({"--init", "--user", "1000:1000"});
  const auto as_root = [&](const std::string& script) {
    return run_ok({"docker", "exec", "--user", "0", files.container.name(), "sh", "-c", script});
  };
  as_root("mkdir /app/closed && echo old > /app/closed/file && chown 1000 /app/closed/file");
  REQUIRE(done(files.tools.read("closed/file")));
  const std::string large = many_lines(17'000'000, "a line of what is too long for one message to the agent\n");
  const json written = files.tools.write("closed/file", large);
  REQUIRE(done(written));
  CHECK(says(written, "written in place"));
  CHECK(as_root("cd /app/closed && wc -c < file && ls -A && find / -xdev -name '.dockbridge-*.tmp'") ==
        fmt::format("{}\nfile", large.size()));
  CHECK(error_code(files.tools.write("closed/new", large)) == "no_permission");
}

TEST_CASE("large files: 1 GB is read and searched in bounded memory") {
  Files files;
  (void)files.sh(
      "cd /app && yes 'a line of text that holds nothing' | head -c 1000M > lines && "
      "head -c 1000M /dev/zero | tr '\\0' x > one_line && truncate -s 1000M sparse");
  for (const char* path : {"lines", "one_line", "sparse"}) {
    CAPTURE(path);
    CHECK(done(files.tools.read(path)));
    CHECK(done(files.tools.read(path, {{"offset", 1'000'000}, {"limit", 3}})));
    CHECK(done(files.tools.read(path, {{"offset", -3}})));
    CHECK(done(files.tools.grep("nothing$|xyz", std::string("/app/") + path, {{"maxResults", 5}})));
    CHECK(done(files.tools.grep("absent", std::string("/app/") + path, {{"literal", true}})));
    CHECK(done(files.tools.grep("text.*\\n.*absent", std::string("/app/") + path, {{"multiLine", true}})));
  }
  CHECK(error_code(files.tools.edit("lines", "a", "b")) == "too_large");
  CHECK(error_code(files.tools.write("lines", "a")) == "too_large");
  for (const char* name : {k_session, k_file_worker}) {
    const auto pids = files.container.pids_of(name);
    CHECK(!pids.empty());
    for (const int pid : pids) {
      CAPTURE(name);
      CHECK((!k_memory_is_meaningful || kib_of(pid, k_peak) < k_small_kib));
    }
  }
  CHECK((!k_memory_is_meaningful || kib_of(files.server.pid(), k_peak) < k_small_kib));
}
