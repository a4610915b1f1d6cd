#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <fstream>

#include "support/field.hpp"
#include "support/file_tools.hpp"
#include "support/full.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("files: every tool rejects an invalid path, and the server keeps serving") {
  Files files;
  const std::string long_path(5000, 'x');
  const std::string longest_path(200'000, 'x');
  const std::string with_nul("a\0b", 3);
  for (const std::string& path : {long_path, longest_path, with_nul, std::string(300, 'n')}) {
    CAPTURE(path.size());
    for (const json& result : {files.tools.read(path), files.tools.write(path, "x"), files.tools.edit(path, "a", "b"),
                               files.tools.undo(path), files.tools.ls(path), files.tools.grep("x", path),
                               files.tools.glob("*", {{"path", path}})}) {
      const std::string code = error_code(result);
      CHECK((code == "path_too_long" || code == "bad_arguments" || code == "too_long"));
      CHECK(text_of(result).size() < 2000);
    }
  }
  for (const json& result :
       {files.tools.read(""), files.tools.write("", "x"), files.tools.edit("", "a", "b"), files.tools.undo("")}) {
    CHECK(error_code(result) == "bad_arguments");
  }
  CHECK(error_code(files.tools.grep(std::string(200'000, '('), ".")) != "");
  CHECK(error_code(files.tools.read("/etc/../../../none")) == "no_such_file");
  CHECK(done(files.tools.read("../etc/passwd")));
  CHECK(done(files.tools.read("/etc/passwd")));
  CHECK(files.container.pids_of(k_session).size() == 1);
}

TEST_CASE("files: names may contain any characters") {
  Files files;
  for (const std::string& name : {std::string("two\nlines"), std::string("\"quoted\" 'twice' `and` $(more)"),
                                  std::string(" "), std::string("-rf"), std::string("--help"), std::string("tab\there"),
                                  std::string("日本語 😀"), std::string("*?[a]{b}")}) {
    CAPTURE(name);
    REQUIRE(done(files.tools.write(name, "one\n")));
    REQUIRE(done(files.tools.edit(name, "one", "needle")));
    CHECK(field(fields_of(files.tools.read(name)), "content") == "needle\n");
  }
  CHECK(field(fields_of(files.tools.ls(".")), "total") == 8);
  CHECK(field(fields_of(files.tools.grep("needle", ".")), "filesWithMatches") == 8);
  CHECK(files.sh("cat -- '/app/-rf'") == "needle");
}

TEST_CASE("files: a name that is not UTF-8 is listed and searched") {
  Files files;
  (void)files.sh(
      "cd /app && printf 'needle\\n' > \"$(printf 'bad\\377')\" && ln -s \"$(printf 'bad\\377')\" good && "
      "printf 'GIF89a\\1\\0\\1\\0' > \"$(printf 'picture\\377')\" && ln -s \"$(printf 'picture\\377')\" picture");
  CHECK(field(fields_of(files.tools.ls(".")), "total") == 4);
  CHECK(field(fields_of(files.tools.grep("needle", ".")), "filesWithMatches") == 1);
  REQUIRE(done(files.tools.read("good")));
  REQUIRE(done(files.tools.edit("good", "needle", "thread")));
  REQUIRE(done(files.tools.undo("good")));
  const json picture = files.tools.read("picture");
  REQUIRE(done(picture));
  CHECK(field(picture, "content").size() == 2);
}

TEST_CASE("spare file: not kept where it would block an unmount") {
  const auto held_open = [](const Files& files) {
    return files.sh("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c '/mnt/.*(deleted)' || true");
  };
  const auto change = [](const Files& files) {
    return done(files.tools.write("/mnt/file", "one\n")) && done(files.tools.edit("/mnt/file", "one", "two"));
  };
  SUBCASE("no process can unmount") {
    Files files;
    REQUIRE(change(files));
    // The file is created after the reply.
    (void)files.tools.read("/mnt/file");
    CHECK(held_open(files) == "1");
    REQUIRE(done(files.tools.edit("/mnt/file", "two", "three")));
    CHECK(files.sh("ls -A /mnt; cat /mnt/file") == "file\nthree");
    eventually("the file is closed when the worker is idle", [&] { return held_open(files) == "0"; });
  }
  SUBCASE("a process can unmount") {
    Files files({"--init", "--cap-add", "SYS_ADMIN", "--security-opt", "apparmor=unconfined"});
    (void)files.sh("mount -t tmpfs none /mnt");
    REQUIRE(change(files));
    (void)files.tools.read("/mnt/file");
    CHECK(held_open(files) == "0");
    CHECK(files.sh("umount /mnt && echo gone") == "gone");
  }
}

TEST_CASE("files: link loops, dangling links and directories have distinct errors") {
  Files files;
  (void)files.sh("cd /app && ln -s b a && ln -s a b && ln -s none dangling && mkdir dir && echo x > file");
  CHECK(error_code(files.tools.read("a")) == "symlink_loop");
  CHECK(error_code(files.tools.write("a", "x")) == "symlink_loop");
  CHECK(says(files.tools.read("dangling"), "Target of the symbolic link is missing: /app/dangling"));
  CHECK(error_code(files.tools.read("dangling")) == "no_such_file");
  CHECK(error_code(files.tools.write("dangling", "x")) == "dangling_link");
  CHECK(error_code(files.tools.read("dir")) == "is_a_directory");
  CHECK(error_code(files.tools.write("dir", "x")) == "is_a_directory");
  CHECK(error_code(files.tools.write("dir/", "x")) == "is_a_directory");
  CHECK(error_code(files.tools.edit("dir", "a", "b")) == "is_a_directory");
  CHECK(error_code(files.tools.read("file/below")) == "not_a_directory");
  CHECK(error_code(files.tools.write("file/below", "x")) == "not_a_directory");
  CHECK(error_code(files.tools.ls("file")) == "not_a_directory");
  CHECK(error_code(files.tools.ls("none")) == "no_such_file");
}

TEST_CASE("files: pipes, sockets, devices and pseudo files never block a tool") {
  Files files;
  (void)files.sh(
      "cd /app && mkfifo pipe && python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('/app/socket')\" && "
      "echo needle > file");
  for (const char* path : {"pipe", "socket", "/dev/zero", "/dev/tty", "/dev/random"}) {
    CAPTURE(path);
    CHECK(error_code(files.tools.read(path)) == "not_a_file");
    CHECK(error_code(files.tools.write(path, "x")) == "not_a_file");
    CHECK(error_code(files.tools.edit(path, "a", "b")) == "not_a_file");
    CHECK(error_code(files.tools.grep("x", path)) == "not_a_directory");
  }
  CHECK(field(fields_of(files.tools.grep("needle", "/app")), "total") == 1);
  CHECK(field(fields_of(files.tools.read("/proc/1/status")), "content").get<std::string>().find("Name:") == 0);
  for (const char* path : {"/proc/kmsg", "/proc/1/mem", "/proc/kcore", "/proc/self/pagemap", "/proc/sysrq-trigger"}) {
    (void)files.tools.read(path);  // any reply is fine
  }
  CHECK(field(files.tools.write("/proc/sys/kernel/hostname", "x"), "isError") == true);
  CHECK(field(files.tools.write("/proc/none", "x"), "isError") == true);
  CHECK(done(files.tools.grep("Name", "/proc/self")));
  CHECK(error_code(files.tools.write("file", "x", {{"expectedRevision", "/app/pipe"}})) == "bad_arguments");
}

TEST_CASE("files: an agent without root respects owners and permissions") {
  Files files({"--init", "--user", "1000:1000"});
  const auto as_root = [&](const std::string& script) {
    return run_ok({"docker", "exec", "--user", "0", files.container.name(), "sh", "-c", script});
  };
  as_root(
      "cd /app && chmod 777 . && for f in theirs shared readonly; do echo old > $f; done && chmod 644 theirs && "
      "chown 0:1000 shared && chmod 6775 shared && chown 1000 readonly && chmod 444 readonly && mkdir closed private "
      "&& "
      "echo old > closed/file && chown 1000 closed/file && chmod 700 private && echo secret > private/file && echo x > "
      "unreadable && chmod 600 unreadable");
  for (const char* path : {"theirs", "readonly"}) {
    REQUIRE(done(files.tools.read(path)));
    CHECK(error_code(files.tools.write(path, "new\n")) == "no_permission");
    CHECK(error_code(files.tools.edit(path, "old", "new")) == "no_permission");
  }
  CHECK(error_code(files.tools.read("unreadable")) == "no_permission");
  CHECK(error_code(files.tools.read("private/file")) == "no_permission");
  CHECK(error_code(files.tools.ls("private")) == "no_permission");
  CHECK(error_code(files.tools.write("closed/new", "x")) == "no_permission");
  CHECK(error_code(files.tools.write("/etc/new/file", "x")) == "no_permission");
  REQUIRE(done(files.tools.read("shared")));
  const json shared = files.tools.write("shared", "new\n");
  REQUIRE(done(shared));
  CHECK(says(shared, "the owner (0)"));
  CHECK(says(shared, "set-user-id"));
  CHECK(as_root("stat -c '%u:%g %a' /app/shared") == "1000:1000 2775");
  REQUIRE(done(files.tools.read("closed/file")));
  const json closed = files.tools.write("closed/file", "new\n");
  REQUIRE(done(closed));
  CHECK(says(closed, "in place"));
  CHECK(as_root("cat /app/closed/file /app/theirs; stat -c %u /app/theirs") == "new\nold\n0");
  CHECK(field(fields_of(files.tools.grep("secret", "/app")), "unreadable").get<int>() >= 1);
  CHECK(as_root("find /app -name '.dockbridge-*'").empty());
}

TEST_CASE("search: many unreadable deep files are reported in a bounded message") {
  Files files({"--init", "--user", "1000:1000"});
  run_ok({"docker", "exec", "--user", "0", files.container.name(), "python3", "-c",
          "import os\n"
          "os.chdir('/app')\n"
          "for i in range(15):\n"
          "  os.mkdir('\\x01' * 250); os.chdir('\\x01' * 250)\n"
          "for i in range(40):\n"
          "  os.close(os.open(str(i), os.O_CREAT | os.O_WRONLY, 0)); os.mkdir('d' + str(i), 0)\n"});
  const json found = files.tools.grep("x", ".");
  REQUIRE(done(found));
  CHECK(field(fields_of(found), "unreadable") == 80);
  CHECK(done(files.tools.glob("*")));
  CHECK(done(files.tools.ls(".", {{"depth", 30}})));
}

TEST_CASE("files: a change preserves owner, mode and extended attributes") {
  Files files;
  (void)files.sh(
      "cd /app && echo old > file && chown 1234:2345 file && chmod 4751 file && "
      "python3 -c \"import os; os.setxattr('/app/file', 'user.note', b'hello')\"");
  const auto facts = [&] {
    return files.sh(
        "stat -c '%u:%g %a' /app/file; python3 -c \"import os; print(os.getxattr('/app/file', 'user.note'))\"");
  };
  const std::string before = facts();
  REQUIRE(done(files.tools.read("file")));
  const json edited = files.tools.edit("file", "old", "new");
  REQUIRE(done(edited));
  CHECK(field(fields_of(edited), "notes").empty());
  CHECK(facts() == before);
  REQUIRE(done(files.tools.undo("file")));
  CHECK(facts() == before);
  REQUIRE(done(files.tools.write("file", "newer", {{"mode", "0600"}})));
  CHECK(files.sh("stat -c '%u:%g %a' /app/file") == "1234:2345 600");
}

TEST_CASE("files: hard links and bind-mounted files are written in place") {
  const TemporaryDirectory host;
  std::ofstream(host / "mounted") << "old and longer\n";
  Files files({"--init", "--volume", (host / "mounted").string() + ":/app/mounted"});
  (void)files.sh("cd /app && echo 'old and longer' > file && ln file other && ln -s file link");
  for (const char* path : {"link", "mounted"}) {
    CAPTURE(path);
    REQUIRE(done(files.tools.read(path)));
    const json edited = files.tools.edit(path, "old and longer", "new");
    REQUIRE(done(edited));
    CHECK(says(edited, "written in place"));
    REQUIRE(done(files.tools.undo(path)));
    REQUIRE(done(files.tools.write(path, "new\n")));
  }
  CHECK(files.sh("cat /app/other /app/mounted; stat -c %h /app/file; readlink /app/link") == "new\nnew\n2\nfile");
  CHECK(run_ok({"cat", (host / "mounted").string()}) == "new");
  CHECK(files.is_tidy());
}

TEST_CASE("files: a full disk leaves every file unchanged") {
  Files files({"--init", "--tmpfs", "/small:size=1m"});
  const std::string large(900'000, 'x');
  (void)files.sh("echo old > /small/file && echo 'hard one' > /small/hard && ln /small/hard /small/link");
  (void)files.tools.read("/small/file");
  (void)files.tools.read("/small/hard");
  REQUIRE(done(files.tools.write("/small/fits", large)));
  const std::string more(400'000, 'y');
  for (const char* path : {"/small/file", "/small/hard", "/small/new"}) {
    CAPTURE(path);
    CHECK(error_code(files.tools.write(path, more)) == "disk_full");
  }
  CHECK(error_code(files.tools.write("/small/fits", large + more)) == "disk_full");
  CHECK(files.sh("cat /small/file /small/link; stat -c %s /small/fits; ls -A /small") ==
        "old\nhard one\n900000\nfile\nfits\nhard\nlink");
  CHECK(files.sh("find / -xdev -name '.dockbridge-*.tmp' 2>/dev/null").empty());
  CHECK(done(files.tools.edit("/small/file", "old", "new")));
}

TEST_CASE("files: a change is rejected if the state directory is full") {
  Files files({"--init", "--tmpfs", "/var/lib/dockbridge/state:size=256k"});
  (void)files.sh("echo old > /app/file && echo old > /app/hard && ln /app/hard /app/link");
  REQUIRE(done(files.tools.read("file")));
  REQUIRE(done(files.tools.read("hard")));
  (void)files.sh("head -c 1M /dev/zero > /var/lib/dockbridge/state/filling 2>/dev/null || true");
  const json written = files.tools.write("file", "new\n");
  CHECK((field(written, "isError") == true ? error_code(written) == "disk_full" : says(written, "cannot be undone")));
  CHECK(field(error_of(files.tools.write("hard", "new\n")), "code") != "");
  CHECK(files.sh("cat /app/hard") == "old");
  CHECK(files.is_tidy());
  (void)files.sh("rm /var/lib/dockbridge/state/filling");
  CHECK(done(files.tools.write("hard", "new\n",
                               {{"expectedRevision", field(fields_of(files.tools.read("hard")), "revision")}})));
}

TEST_CASE("files: a read-only file system is reported, and its files are readable") {
  const TemporaryDirectory host;
  std::ofstream(host / "file") << "old\n";
  Files files({"--init", "--volume", host.path().string() + ":/fixed:ro"});
  REQUIRE(done(files.tools.read("/fixed/file")));
  CHECK(error_code(files.tools.write("/fixed/file", "x")) == "read_only");
  CHECK(error_code(files.tools.edit("/fixed/file", "old", "new")) == "read_only");
  CHECK(error_code(files.tools.write("/fixed/new", "x")) == "read_only");
  CHECK(error_code(files.tools.write("/fixed/dir/new", "x")) == "read_only");
  CHECK(run_ok({"ls", "-A", host.path().string()}) == "file");
}

TEST_CASE("file_read: a file that changes meanwhile is read as of one moment") {
  Files files;
  (void)files.sh(
      "cd /app && (while [ ! -e stop ]; do seq 1 100000 > busy; seq 1 200 >> busy; : > busy; rm busy; done) > "
      "/dev/null 2>&1 &");
  for (int round = 0; round < 100; ++round) {
    const json result = files.tools.read("busy", {{"offset", round % 2 == 0 ? 0 : -5}});
    if (field(result, "isError") == true) {
      REQUIRE(error_code(result) == "no_such_file");
    }
    const json found = files.tools.grep("^1234$", "/app");
    REQUIRE(done(found));
  }
  (void)files.sh("touch /app/stop");
}

TEST_CASE("search: invalid and expensive patterns end soon, with error or result") {
  Files files;
  (void)files.sh("head -c 300000 /dev/zero | tr '\\0' a > /app/file; echo >> /app/file; echo b >> /app/file");
  for (const std::string pattern : {"(", "[", "a{2000}{2000}", "(?<=a)b", "\\1", "*"}) {
    CAPTURE(pattern);
    CHECK(error_code(files.tools.grep(pattern, "/app")) == "bad_pattern");
  }
  for (const std::string pattern :
       {"(a*)*b", "(a|aa)+$", "(x+x+)+y", "((a{0,100}){0,10})c", "^(([a-z])+.)+[A-Z]([a-z])+$"}) {
    CAPTURE(pattern);
    CHECK(done(files.tools.grep(pattern, "/app")));
  }
  CHECK(error_code(files.tools.grep("", "/app")) == "bad_arguments");
}

TEST_CASE("files: a directory swapped for a link never leads out of the root") {
  Files files({"--init"}, "dockbridge-test:slim", {"--root", "/app/sub"});
  (void)files.sh(
      "mkdir -p /app/sub/dir /app/out && echo secret > /app/out/key && echo harmless > /app/sub/dir/key && ln -s "
      "/app/out /app/sub/link");
  CHECK(error_code(files.tools.read("/etc/passwd")) == "outside_root");
  CHECK(error_code(files.tools.read("/app/out/key")) == "outside_root");
  CHECK(error_code(files.tools.read("/app/sub/../out/key")) == "outside_root");
  CHECK(error_code(files.tools.read("/app/sub/link/key")) == "outside_root");
  CHECK(error_code(files.tools.write("/app/sub/link/planted", "x")) == "outside_root");
  CHECK(error_code(files.tools.ls("/app/sub/link")) == "outside_root");
  CHECK(error_code(files.tools.grep("secret", "/app/sub/link")) == "outside_root");
  CHECK(error_code(files.tools.ls("/app")) == "outside_root");
  CHECK(field(fields_of(files.tools.grep("secret", "/app/sub")), "total") == 0);
  REQUIRE(done(files.tools.write("/app/sub/new/file", "x")));
  (void)files.sh(
      "cd /app/sub && python3 -c \"\n"
      "import os, ctypes\n"
      "libc = ctypes.CDLL(None)\n"
      "if os.fork() == 0:\n"
      "  os.setsid()\n"
      "  for fd in (0, 1, 2): os.close(fd)\n"
      "  while not os.path.exists('/app/stop'): libc.renameat2(-100, b'dir', -100, b'link', 2)\n"
      "\"");
  int inside = 0;
  for (int round = 0; round < 150; ++round) {
    const json read = files.tools.read("/app/sub/dir/key");
    if (field(read, "isError") != true) {
      REQUIRE(field(fields_of(read), "content") == "harmless\n");
      ++inside;
    }
    (void)files.tools.write(fmt::format("/app/sub/dir/planted{}", round), "x");
    (void)files.tools.write(fmt::format("/app/sub/dir/new{}/planted", round), "x");
    (void)files.tools.edit("/app/sub/dir/key", "secret", "broken");
    const json found = files.tools.grep("secret", "/app/sub");
    REQUIRE((field(found, "isError") == true || field(fields_of(found), "total") == 0));
  }
  (void)files.sh("touch /app/stop");
  CHECK(inside > 0);
  CHECK(files.sh("ls -A /app/out; cat /app/out/key") == "key\nsecret");
}

TEST_CASE("files: the next agent cleans up after a killed one") {
  Files files;
  (void)files.tools.write("file", "x");
  const std::string state = "/var/lib/dockbridge/state/0";
  (void)files.sh(
      "cd /app && echo half > .dockbridge-0123456789abcdef.tmp && printf 'T/app/.dockbridge-0123456789abcdef.tmp' > " +
      state + "/writing_1_1_1");
  Server next({"-c", files.container.name()});
  next.initialize();
  (void)next.execute("true");
  eventually("the temporary file is gone", [&] { return files.is_tidy(); });
  eventually("its journal is gone",
             [&] { return files.sh("ls " + state + " | grep -c writing_1_1_1 || true") == "0"; });
}

TEST_CASE("file worker: a killed worker fails one call only") {
  Files files;
  (void)files.sh("echo old > /app/file");
  (void)files.tools.read("file");
  for (const int pid : files.container.pids_of(k_file_worker)) {
    ::kill(pid, SIGKILL);
  }
  eventually("the tools work again", [&] { return !files.tools.read("file").value("isError", false); });
  CHECK(done(files.tools.edit("file", "old", "new")));
  CHECK(files.container.zombies() == 0);
}

TEST_CASE("files: the tools work without openat2") {
  const TemporaryDirectory host;
  std::ofstream(host / "profile.json")
      << R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["openat2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]})";
  Files files({"--init", "--security-opt", "seccomp=" + (host / "profile.json").string()});
  CHECK(
      files.sh("python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(437, -100, b\"/\", 0, 0); "
               "print(ctypes.get_errno())'") == "38");
  REQUIRE(done(files.tools.write("dir/file", "one\n")));
  CHECK(done(files.tools.edit("dir/file", "one", "two")));
  CHECK(done(files.tools.undo("dir/file")));
  CHECK(field(fields_of(files.tools.grep("one", ".")), "total") == 1);
  CHECK(done(files.tools.ls(".", {{"depth", 3}, {"details", true}})));
}

TEST_CASE("file worker: a crash is reported, and the next call works") {
  Connected c;
  c.server.execute("echo hello > /app/file");
  const json arguments = {{"filePath", "/app/file"}};
  REQUIRE(field(c.server.call("file_read", arguments), "isError") == false);
  const auto workers = c.container.pids_of("dockbridge-file");
  REQUIRE(workers.size() == 1);
  REQUIRE(::kill(workers.front(), SIGSTOP) == 0);
  const int id = c.server.start_call("file_read", arguments);
  CHECK(c.server.stays_silent(milliseconds(200)));
  REQUIRE(::kill(workers.front(), SIGKILL) == 0);
  CHECK(field(error_of(field(c.server.receive_answer(id), "result")), "code") == "worker_gone");
  CHECK(field(fields_of(c.server.call("file_read", arguments)), "content") == "hello\n");
}

TEST_CASE("file_write: a cancelled upload leaves neither its worker nor its temporary file") {
  Connected c;
  const std::string content(20'000'000, 'x');  // sent in pieces
  REQUIRE(field(c.server.call("file_write", {{"filePath", "/app/a"}, {"content", content}}), "isError") == false);
  const auto workers = c.container.pids_of("dockbridge-file");
  REQUIRE(workers.size() == 1);
  REQUIRE(::kill(workers.front(), SIGSTOP) == 0);
  const int id = c.server.start_call("file_write", {{"filePath", "/app/b"}, {"content", content}});
  // A sanitizer reads the long message slowly.
  CHECK(c.server.stays_silent(milliseconds(test::k_is_sanitized ? 5000 : 500)));
  c.server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
  CHECK(c.server.stays_silent(milliseconds(500)));
  REQUIRE(::kill(workers.front(), SIGCONT) == 0);
  eventually("the worker is gone", [&] { return c.container.pids_of("dockbridge-file").empty(); });
  CHECK(c.container.sh("ls -A /app") == "a");
}
