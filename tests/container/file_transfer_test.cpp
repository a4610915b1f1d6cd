#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/field.hpp"
#include "support/file_tools.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
namespace fs = std::filesystem;

namespace {

/// A server that may copy from and to one directory of the host, and a forbidden directory beside it.
struct Transfers {
  TemporaryDirectory host;
  fs::path allowed = host / "allowed";
  fs::path outside = host / "outside";
  Files files;

  Transfers() : files({"--init"}, "dockbridge-test:slim", {"--allow-host-path", made(allowed).string()}) {
    fs::create_directory(outside);
    put(outside / "secret", "secret");
  }
  static const fs::path& made(const fs::path& directory) {
    fs::create_directory(directory);
    return directory;
  }
  static void put(const fs::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  [[nodiscard]] json upload(const std::string& from, const std::string& to) const {
    return files.tools.server.call("file_upload", {{"hostPath", from}, {"filePath", to}}, seconds(60));
  }
  [[nodiscard]] json download(const std::string& from, const std::string& to, bool overwrite = false) const {
    return files.tools.server.call("file_download", {{"filePath", from}, {"hostPath", to}, {"overwrite", overwrite}},
                                   seconds(60));
  }
  /// Checks that the directory contains only the expected files.
  [[nodiscard]] std::size_t entries_outside() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(outside), fs::directory_iterator()));
  }
  [[nodiscard]] bool is_tidy() const {
    return std::none_of(fs::recursive_directory_iterator(host.path()), fs::recursive_directory_iterator(),
                        [](const auto& entry) { return entry.path().filename().string().starts_with(".dockbridge-"); });
  }
};

}  // namespace

TEST_CASE("file transfer: copies are exact for any size, with mode and guard") {
  const Transfers t;
  std::string large(5'000'000, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) {
    large[i] = static_cast<char>(i * i >> 7U);
  }
  for (const std::string& content : {std::string(), std::string("x"), large}) {
    CAPTURE(content.size());
    const std::string name = std::to_string(content.size());
    Transfers::put(t.allowed / name, content);
    REQUIRE(::chmod((t.allowed / name).c_str(), 0750) == 0);
    const json up = t.upload((t.allowed / name).string(), "dir/" + name);
    REQUIRE(done(up));
    CHECK(field(fields_of(up), "size") == content.size());
    CHECK(t.files.sh("stat -c '%a %s' /app/dir/" + name) == fmt::format("750 {}", content.size()));
    REQUIRE(done(t.download("dir/" + name, (t.allowed / (name + ".back")).string())));
    CHECK(Transfers::content(t.allowed / (name + ".back")) == content);
  }
  (void)t.files.sh("echo theirs > /app/file");
  CHECK(error_code(t.upload((t.allowed / "1").string(), "file")) == "not_read");
  REQUIRE(done(t.files.tools.read("file")));
  REQUIRE(done(t.upload((t.allowed / "1").string(), "file")));
  REQUIRE(done(t.files.tools.undo("file")));
  CHECK(t.files.sh("cat /app/file") == "theirs");
  CHECK(t.is_tidy());
  CHECK(t.files.is_tidy());
}

TEST_CASE("file transfer: a host file is replaced only on request, atomically") {
  const Transfers t;
  (void)t.files.sh("echo new > /app/file");
  Transfers::put(t.allowed / "file", "precious");
  const std::string path = (t.allowed / "file").string();
  CHECK(error_code(t.download("file", path)) == "host_file_exists");
  CHECK(Transfers::content(path) == "precious");
  REQUIRE(done(t.download("file", path, true)));
  CHECK(Transfers::content(path) == "new\n");
  CHECK(error_code(t.download("none", path, true)) == "no_such_file");
  CHECK(Transfers::content(path) == "new\n");
  fs::create_symlink("../outside/secret", t.allowed / "link");
  REQUIRE(done(t.download("file", (t.allowed / "link").string(), true)));  // replaces the link, not its target
  CHECK(Transfers::content(t.outside / "secret") == "secret");
  CHECK(t.is_tidy());
}

TEST_CASE("file transfer: only files in allowed host directories are reached") {
  const Transfers t;
  (void)t.files.sh("echo planted > /app/file");
  fs::create_symlink("../outside", t.allowed / "out");
  fs::create_symlink("../outside/secret", t.allowed / "link");
  fs::create_symlink("/etc/passwd", t.allowed / "passwd");
  const std::string allowed = t.allowed.string();
  for (const std::string& path :
       {allowed + "/../outside/secret", (t.outside / "secret").string(), std::string("/etc/passwd"),
        allowed + "x/secret", allowed, std::string("relative"), std::string("../x")}) {
    CAPTURE(path);
    CHECK(error_code(t.upload(path, "stolen")) == "outside_host_path");
  }
  for (const std::string& path : {allowed + "/link", allowed + "/out/secret", allowed + "/passwd"}) {
    CAPTURE(path);
    CHECK(error_code(t.upload(path, "stolen")) == "unsafe_host_path");
  }
  for (const std::string& path :
       {allowed + "/../outside/planted", (t.outside / "planted").string(), std::string("/tmp/dockbridge-planted")}) {
    CAPTURE(path);
    CHECK(error_code(t.download("file", path, true)) == "outside_host_path");
  }
  CHECK(error_code(t.download("file", allowed + "/out/planted", true)) == "unsafe_host_path");
  REQUIRE(::mkfifo((t.allowed / "pipe").c_str(), 0600) == 0);
  fs::create_directory(t.allowed / "dir");
  const std::string with_nul = allowed + std::string("/x\0y", 4);
  for (const std::string& path : {allowed + "/pipe", allowed + "/dir", allowed + "/none", with_nul,
                                  allowed + "/" + std::string(5000, 'x'), allowed + "/pipe/below"}) {
    CAPTURE(path.substr(0, 100));
    CHECK(error_code(t.upload(path, "stolen")) == "host_file");
    CHECK((path.ends_with("/none") || error_code(t.download("file", path)) != ""));
  }
  CHECK(error_code(t.upload("", "stolen")) == "outside_host_path");
  CHECK(t.files.sh("ls -A /app") == "file");
  CHECK(t.entries_outside() == 1);
  CHECK(t.is_tidy());
}

TEST_CASE("file transfer: a directory swapped for a link is not followed") {
  const Transfers t;
  (void)t.files.sh("echo planted > /app/file");
  fs::create_directory(t.allowed / "dir");
  Transfers::put(t.allowed / "dir" / "secret", "harmless");
  fs::create_symlink("../outside", t.allowed / "link");
  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    while (!stop) {
      ::renameat2(AT_FDCWD, (t.allowed / "dir").c_str(), AT_FDCWD, (t.allowed / "link").c_str(), RENAME_EXCHANGE);
    }
  });
  int inside = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string name = fmt::format("copy{}", round);
    if (field(t.upload((t.allowed / "dir" / "secret").string(), name), "isError") != true) {
      CHECK(field(fields_of(t.files.tools.read(name)), "content") == "harmless\n");
      ++inside;
    }
    (void)t.download("file", (t.allowed / "dir" / name).string());
  }
  stop = true;
  swapper.join();
  CHECK(inside > 0);
  CHECK(t.entries_outside() == 1);
}

TEST_CASE("file transfer: a large copy reports progress and can be cancelled") {
  const Transfers t;
  const fs::path path = t.allowed / "large";
  Transfers::put(path, "x");
  fs::resize_file(path, 40'000'000'000);
  Server& server = t.files.tools.server;
  const int id = server.start_call("file_upload", {{"hostPath", path.string()}, {"filePath", "large"}},
                                   {{"progressToken", "how far"}});
  const json progress = server.receive();
  CHECK(field(progress, "method") == "notifications/progress");
  CHECK(field(progress, "params", "progressToken") == "how far");
  CHECK(field(progress, "params", "message").get<std::string>().find("of 40") != std::string::npos);
  server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
  eventually("no file is left", [&] { return t.files.sh("ls -A /app").empty(); });
  CHECK(done(t.files.tools.write("file", "x")));
}
