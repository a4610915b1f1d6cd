#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
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

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A host directory with the workspace, which the container has at /app, and a secret outside the workspace.
struct Host {
  TemporaryDirectory world;
  fs::path workspace = world / "workspace";
  fs::path data = workspace / "data";
  fs::path secrets = world / "secrets";

  Host() {
    fs::create_directories(data);
    fs::create_directory(secrets);
    fs::permissions(workspace, fs::perms::all);
    fs::permissions(data, fs::perms::all);
    std::ofstream(secrets / "key") << "secret";
  }
  [[nodiscard]] std::vector<std::string> mount() const { return {"--init", "--volume", workspace.string() + ":/app"}; }
  [[nodiscard]] std::size_t number_of_secrets() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(secrets), {}));
  }
};

json upload(Server& server, const fs::path& from, const std::string& to) {
  return server.call("file_upload", {{"hostPath", from.string()}, {"filePath", to}}, seconds(60));
}

json download(Server& server, const std::string& from, const fs::path& to, bool overwrite = false) {
  return server.call("file_download", {{"filePath", from}, {"hostPath", to.string()}, {"overwrite", overwrite}},
                     seconds(60));
}

}  // namespace

TEST_CASE("host paths: a directory that a command replaces by a link is not used") {
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  REQUIRE(done(files.tools.write("data/note", "mine")));
  REQUIRE(done(upload(files.server, host.data / "note", "copy")));
  (void)files.sh("mv /app/data /app/moved && ln -s " + host.secrets.string() + " /app/data");
  CHECK(error_code(upload(files.server, host.data / "key", "stolen")) == "host_path_changed");
  CHECK(error_code(download(files.server, "copy", host.data / "planted")) == "host_path_changed");
  CHECK(error_code(download(files.server, "copy", host.data / "key", true)) == "host_path_changed");
  CHECK(content_of(host.secrets / "key") == "secret");
  CHECK(host.number_of_secrets() == 1);
  CHECK(files.sh("ls /app/stolen 2>/dev/null || echo none") == "none");
  (void)files.sh("rm /app/data && mv /app/moved /app/data");
  CHECK(done(upload(files.server, host.data / "note", "again")));
}

TEST_CASE("host paths: a link that was planted before the start is rejected") {
  const Host host;
  fs::remove(host.data);
  fs::create_symlink(host.secrets, host.data);
  // The server learns that the container can write to the directory only when it sees the mounts.
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  CHECK(error_code(upload(files.server, host.data / "key", "stolen")) == "unsafe_host_path");
  REQUIRE(done(files.tools.write("file", "x")));
  CHECK(error_code(download(files.server, "file", host.data / "planted")) == "unsafe_host_path");
  CHECK(host.number_of_secrets() == 1);
}

TEST_CASE("host paths: no link below an allowed directory is followed") {
  // The allowed directory contains the workspace, so the container can make links below it.
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.world.path().string()});
  (void)files.sh("ln -s ../secrets/key /app/link && ln -s ../secrets /app/directory && echo mine > /app/file");
  CHECK(error_code(upload(files.server, host.workspace / "link", "stolen")) == "unsafe_host_path");
  CHECK(error_code(upload(files.server, host.workspace / "directory/key", "stolen")) == "unsafe_host_path");
  CHECK(error_code(download(files.server, "file", host.workspace / "directory/planted")) == "unsafe_host_path");
  CHECK(error_code(download(files.server, "file", host.workspace / "directory/key", true)) == "unsafe_host_path");
  CHECK(host.number_of_secrets() == 1);
  CHECK(content_of(host.secrets / "key") == "secret");
  CHECK(files.sh("ls /app/stolen 2>/dev/null || echo none") == "none");
  CHECK(done(upload(files.server, host.secrets / "key", "copy")));
}

TEST_CASE("host paths: a container that keeps swapping the directory reaches no other file") {
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  REQUIRE(done(files.tools.write("data/key", "harmless")));
  const fs::path link = host.workspace / "link";
  fs::create_symlink(host.secrets, link);
  std::atomic<bool> over = false;
  std::thread container([&] {
    while (!over) {
      ::renameat2(AT_FDCWD, host.data.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
    }
  });
  int copied = 0;
  for (int round = 0; round < 60 || (copied == 0 && round < 1000); ++round) {
    const std::string name = "copy" + std::to_string(round);
    if (field(upload(files.server, host.data / "key", name), "isError") != true) {
      CHECK(field(fields_of(files.tools.read(name)), "content") == "harmless\n");
      ++copied;
    }
    (void)download(files.server, "link/key", host.data / name);
  }
  over = true;
  container.join();
  CHECK(copied > 0);
  CHECK(host.number_of_secrets() == 1);
  CHECK(content_of(host.secrets / "key") == "secret");
}

TEST_CASE("host paths: the direct line follows no link that the container can change") {
  const Host host;
  const fs::path app = host.workspace / "data";
  // The directory for /app lies in another mount, so the container can replace its name on the host.
  Container container("dockbridge-test:slim",
                      {"--init", "--volume", host.workspace.string() + ":/outer", "--volume", app.string() + ":/app"});
  (void)container.sh("mv /outer/data /outer/moved && ln -s " + host.secrets.string() + " /outer/data");
  Server server({"-c", container.name()});
  server.initialize();
  CHECK(text_of(server.execute("echo works")).find("works") != std::string::npos);
  CHECK(server.log().find("The container can change a symbolic link") != std::string::npos);
  CHECK(host.number_of_secrets() == 1);
}

TEST_CASE("download: a file that is replaced repeatedly is copied as one version") {
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  (void)files.sh(
      "head -c 20000000 /dev/zero | tr '\\0' a > /app/file.a; head -c 20000000 /dev/zero | tr '\\0' b > /app/file.b; "
      "cp /app/file.a /app/file");
  const std::string swapper = start_in_background(
      files.server,
      "while [ ! -e /app/stop ]; do for v in a b; do cp /app/file.$v /app/new; mv /app/new /app/file; done; done");
  int copied = 0;
  for (int round = 0; round < 6; ++round) {
    const json result = download(files.server, "file", host.data / "copy", true);
    CHECK(done(result));
    const std::string content = content_of(host.data / "copy");
    CHECK(content.size() == 20'000'000);
    CHECK(content.find_first_not_of(content.front()) == std::string::npos);
    ++copied;
  }
  (void)files.sh("touch /app/stop");
  CHECK(copied == 6);
}

TEST_CASE("download: a write in place during the copy is reported and leaves no file") {
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  (void)files.sh("head -c 50000000 /dev/zero | tr '\\0' a > /app/file");
  const std::string writer = start_in_background(
      files.server,
      "i=0; while [ ! -e /app/stop ]; do i=$((i+1)); printf %08d $i | dd of=/app/file conv=notrunc status=none; done");
  std::string code;
  eventually(
      "the change is reported",
      [&] {
        const json result = download(files.server, "file", host.data / "copy", true);
        code = result.value("isError", false) ? error_code(result) : "";
        return !code.empty();
      },
      seconds(60));
  CHECK(code == "file_changed");
  (void)files.sh("touch /app/stop");
  fs::remove(host.data / "copy");
  CHECK(fs::is_empty(host.data));
}

TEST_CASE("download: holes and mode are preserved") {
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  (void)files.sh("truncate -s 300M /app/sparse && printf end >> /app/sparse && chmod 4751 /app/sparse");
  REQUIRE(done(download(files.server, "sparse", host.data / "new")));
  struct stat info {};
  REQUIRE(::stat((host.data / "new").c_str(), &info) == 0);
  CHECK(info.st_size == 300L * 1024 * 1024 + 3);
  CHECK(info.st_blocks * 512 < 1'000'000);
  CHECK((info.st_mode & 07777U) == 0751);
  std::ofstream(host.data / "old") << "old";
  REQUIRE(::chmod((host.data / "old").c_str(), 0640) == 0);
  REQUIRE(done(download(files.server, "sparse", host.data / "old", true)));
  REQUIRE(::stat((host.data / "old").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777U) == 0640);
  CHECK(info.st_size == 300L * 1024 * 1024 + 3);
}

TEST_CASE("download: a pseudo file is copied with its content") {
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  REQUIRE(done(download(files.server, "/proc/version", host.data / "version")));
  CHECK(content_of(host.data / "version") == content_of("/proc/version"));
}

TEST_CASE("download: more concurrent copies than workers all complete") {
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  (void)files.sh("head -c 3000000 /dev/urandom > /app/file");
  constexpr int k_copies = 24;
  std::vector<int> calls;
  for (int i = 0; i < k_copies; ++i) {
    calls.push_back(files.server.start_call(
        "file_download", {{"filePath", "file"}, {"hostPath", (host.data / ("copy" + std::to_string(i))).string()}}));
  }
  for (const int id : calls) {
    CHECK(done(field(files.server.receive_answer(id, seconds(60)), "result")));
  }
  const std::string content = content_of(host.workspace / "file");
  for (int i = 0; i < k_copies; ++i) {
    CHECK(content_of(host.data / ("copy" + std::to_string(i))) == content);
  }
}

TEST_CASE("download: a cancelled copy leaves no files on host or container") {
  const Host host;
  Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.data.string()});
  (void)files.sh("truncate -s 4T /app/file");
  Server& server = files.server;
  const int id = server.start_call("file_download", {{"filePath", "file"}, {"hostPath", (host.data / "copy").string()}},
                                   {{"progressToken", "how far"}});
  CHECK(field(server.receive(), "method") == "notifications/progress");
  CHECK_FALSE(fs::is_empty(host.data));
  const std::vector<int> workers = files.container.pids_of(k_file_worker);
  REQUIRE(workers.size() == 1);
  server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
  eventually("no file is left on the host", [&] { return fs::is_empty(host.data); });
  eventually("its worker is gone", [&] {
    const std::vector<int> now = files.container.pids_of(k_file_worker);
    return std::find(now.begin(), now.end(), workers.front()) == now.end();
  });
  CHECK(done(files.tools.write("file2", "x")));
}

TEST_CASE("file_read: a page reports a revision that differs from the previous page") {
  const Files files;
  (void)files.sh("seq 1000 > /app/file");
  const json first = files.tools.read("file", {{"limit", 10}});
  REQUIRE(done(first));
  CHECK(says(first, field(fields_of(first), "revision").get<std::string>().substr(0, 8)));
  const json second = files.tools.read("file", {{"limit", 10}, {"offset", 10}});
  CHECK_FALSE(fields_of(second).contains("previousRevision"));
  (void)files.sh("seq 5 2000 > /app/file");
  const json third = files.tools.read("file", {{"limit", 10}, {"offset", 20}});
  CHECK(field(fields_of(third), "previousRevision") == field(fields_of(first), "revision"));
  CHECK(field(fields_of(third), "revision") != field(fields_of(first), "revision"));
  CHECK(says(third, "changed since the previous page"));
  CHECK_FALSE(fields_of(files.tools.read("file", {{"limit", 10}, {"offset", 30}})).contains("previousRevision"));
  (void)files.sh("seq 7 2000 > /app/file");
  CHECK_FALSE(fields_of(files.tools.read("file", {{"limit", 10}})).contains("previousRevision"));
  // The owner's own change is not reported.
  REQUIRE(done(files.tools.edit("file", "100\n101\n", "x\n")));
  CHECK_FALSE(fields_of(files.tools.read("file", {{"limit", 10}, {"offset", 10}})).contains("previousRevision"));
}

TEST_CASE("orphans: the next write removes files that a removed container left") {
  const Host host;
  const fs::path source = host.secrets / "large";
  std::ofstream(source) << "x";
  fs::resize_file(source, 4'000'000'000);
  {
    Files files(host.mount(), "dockbridge-test:slim", {"--allow-host-path", host.secrets.string()});
    REQUIRE(done(files.tools.write("warm", "up")));
    // A large content is uploaded in pieces to a temporary file. The container is killed during the upload.
    files.server.start_call("file_upload", {{"hostPath", source.string()}, {"filePath", "data/large"}});
    eventually("the temporary file is there", [&] { return !fs::is_empty(host.data); });
    run_ok({"docker", "kill", files.container.name()});
  }
  REQUIRE_FALSE(fs::is_empty(host.data));
  const fs::path orphan = fs::directory_iterator(host.data)->path();
  CHECK(orphan.filename().string().starts_with(".dockbridge-"));
  const fs::path in_use = host.data / ".dockbridge-00000000000000aa.tmp";
  std::ofstream(in_use) << "of another container";
  const Fd lock(::open(in_use.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
  for (const fs::path& path : {orphan, in_use}) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const Files files(host.mount());
  REQUIRE(done(files.tools.write("data/small", "x")));
  eventually("the orphan is gone", [&] { return !fs::exists(orphan); });
  CHECK(fs::exists(in_use));
}
