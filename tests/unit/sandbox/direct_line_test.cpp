#include "sandbox/direct_line.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>

#include "sandbox/connection.hpp"
#include "support/field.hpp"
#include "support/kernel.hpp"
#include "support/temporary_directory.hpp"
#include "unit/sandbox/fake_agent.hpp"
#include "util/socket_address.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Connection;
using sandbox::DirectLine;
using sandbox::SharedDirectory;

namespace {

/// Whether the kernel is too old for lines. Then the tests only check the reason.
bool is_without_lines() {
  if (has_direct_lines()) {
    return false;
  }
  const TemporaryDirectory directory;
  const auto line = DirectLine::offer({directory.path(), "/there"});
  REQUIRE_FALSE(line);
  CHECK(line.error().message.find("Linux 6.16") != std::string::npos);
  CHECK(std::filesystem::is_empty(directory.path()));
  return true;
}

/// A connection to the socket of an invitation, in the directory on the host, that sends `words`.
Fd visit(const TemporaryDirectory& directory, const wire::LineRequest& invitation, const std::string& words) {
  const auto name = std::filesystem::path(invitation.path).filename().string();
  const sockaddr_un address = socket_address(directory.fd(), name);
  Fd visitor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(visitor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::send(visitor.get(), words.data(), words.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(words.size()));
  return visitor;
}

bool is_hung_up(const Fd& socket) {
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, 0) <= 0;
}

struct Offered {
  TemporaryDirectory directory;
  Result<DirectLine> line = DirectLine::offer({directory.path(), "/there"});
  wire::LineRequest invitation;

  Offered() {
    REQUIRE(line);
    invitation = line->invitation();
  }
};

}  // namespace

TEST_CASE("direct line: only the session can use the socket, which is then removed") {
  if (is_without_lines()) {
    return;
  }
  const TemporaryDirectory directory;
  {
    const auto line = DirectLine::offer({directory.path(), "/there"});
    REQUIRE(line);
    const wire::LineRequest invitation = line->invitation();
    const auto file = directory.path() / std::filesystem::path(invitation.path).filename();
    CHECK(invitation.path == "/there/" + file.filename().string());
    struct stat info {};
    REQUIRE(::lstat(file.c_str(), &info) == 0);
    CHECK(S_ISSOCK(info.st_mode));
    CHECK((info.st_mode & 0777U) == 0666);
    CHECK(invitation.device == info.st_dev);
    CHECK(invitation.inode == info.st_ino);
    CHECK(invitation.key.size() == 32);
  }
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("direct line: a peer with the key is accepted, others are rejected") {
  if (is_without_lines()) {
    return;
  }
  const Offered offered;
  const std::string key = offered.invitation.key;
  const Fd stranger = visit(offered.directory, offered.invitation, std::string(key.size(), 'x'));
  const Fd short_of_words = visit(offered.directory, offered.invitation, key.substr(1));
  const Fd silent = visit(offered.directory, offered.invitation, "");
  const Fd session = visit(offered.directory, offered.invitation, key + "and more");
  auto stream = offered.line->accept(make_streams("complaint of the engine").host);
  REQUIRE(stream);
  CHECK(is_hung_up(stranger));
  CHECK(is_hung_up(short_of_words));
  CHECK(is_hung_up(silent));
  std::string buffer(100, '\0');
  CHECK((*stream)->read(buffer) == std::size_t{8});
  CHECK(buffer.starts_with("and more"));
  CHECK((*stream)->read(buffer) == std::size_t{0});
  CHECK((*stream)->write("hello") == std::size_t{5});
  CHECK((*stream)->stderr_text() == "complaint of the engine");
}

TEST_CASE("direct line: without a peer that has the key it fails") {
  if (is_without_lines()) {
    return;
  }
  const Offered offered;
  const Fd stranger = visit(offered.directory, offered.invitation, "let me in");
  const auto stream = offered.line->accept(make_streams().host);
  REQUIRE_FALSE(stream);
  CHECK(stream.error().code == ErrorCode::protocol_violation);
}

TEST_CASE("direct line: peers cannot send descriptors") {
  if (is_without_lines()) {
    return;
  }
  const Offered offered;
  const Fd session = visit(offered.directory, offered.invitation, offered.invitation.key);
  const auto sends_descriptor = [&] {
    char byte = 'x';
    iovec bytes{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    *part = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    const int descriptor = session.get();
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
    return ::sendmsg(session.get(), &message, MSG_NOSIGNAL) >= 0;
  };
  CHECK_FALSE(sends_descriptor());
  CHECK(errno == EPERM);
  const auto stream = offered.line->accept(make_streams().host);
  REQUIRE(stream);
  CHECK_FALSE(sends_descriptor());
  CHECK(errno == EPERM);
}

namespace {

/// A process that repeatedly replaces a file by a socket of its own as soon as the file exists, and listens.
class Replacer {
 public:
  Replacer(int directory, const std::string& name) : m_pid(::fork()) {
    REQUIRE(m_pid >= 0);
    if (m_pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (Fd previous, listener;; previous = std::move(listener)) {
        listener.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const sockaddr_un address = socket_address(directory, "other");
        ::unlinkat(directory, "other", 0);
        ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
        ::listen(listener.get(), 8);
        while (::renameat2(directory, "other", directory, name.c_str(), RENAME_EXCHANGE) != 0) {
        }
      }
    }
  }
  ~Replacer() {
    ::kill(m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
  Replacer(const Replacer&) = delete;
  Replacer& operator=(const Replacer&) = delete;

 private:
  pid_t m_pid;
};

/// The process that listens at the socket with this inode, by either of the two names; nullopt if neither has it.
std::optional<pid_t> listener_at(int directory, const std::string& name, std::uint64_t inode) {
  for (const std::string& path : {name, std::string("other")}) {
    const Fd file(::openat(directory, path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    const Fd visitor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = socket_address(file.get());
    struct stat info {};
    ucred who{};
    socklen_t size = sizeof who;
    if (file && ::fstat(file.get(), &info) == 0 && info.st_ino == inode &&
        ::connect(visitor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::getsockopt(visitor.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
      return who.pid;
    }
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("direct line: a replaced socket is detected and not announced") {
  if (is_without_lines()) {
    return;
  }
  const TemporaryDirectory directory;
  const std::string name = fmt::format(".dockbridge-{}.sock", ::getpid());
  const Replacer replacer(directory.fd(), name);
  int noticed = 0;
  for (const auto deadline = Deadline::after(k_patience); noticed < 5 && !deadline.passed();) {
    const auto line = DirectLine::offer({directory.path(), "/there"});
    if (line) {
      const auto listener = listener_at(directory.fd(), name, line->invitation().inode);
      CHECK(listener.value_or(::getpid()) == ::getpid());
    } else if (line.error().message.find("replaced") != std::string::npos) {
      ++noticed;
    }
  }
  CHECK(noticed == 5);
}

TEST_CASE("direct line: its end is the end of the stream in both directions") {
  if (is_without_lines()) {
    return;
  }
  const Offered offered;
  Fd session = visit(offered.directory, offered.invitation, offered.invitation.key);
  auto stream = offered.line->accept(make_streams().host);
  REQUIRE(stream);
  session.reset();
  std::string buffer(10, '\0');
  REQUIRE_FALSE((*stream)->read(buffer));
  CHECK((*stream)->read(buffer).error().code == ErrorCode::stream_ended);
  REQUIRE_FALSE((*stream)->write("x"));
  CHECK((*stream)->write("x").error().code == ErrorCode::stream_ended);
}

TEST_CASE("direct line: a file of its name is replaced, a directory is an error") {
  if (is_without_lines()) {
    return;
  }
  const TemporaryDirectory directory;
  const auto name =
      std::filesystem::path(DirectLine::offer({directory.path(), "/there"})->invitation().path).filename();
  SUBCASE("a file") {
    std::ofstream(directory / name) << "left by another";
    CHECK(DirectLine::offer({directory.path(), "/there"}));
  }
  SUBCASE("a link to a file") {
    std::ofstream(directory / "precious") << "mine";
    std::filesystem::permissions(directory / "precious", std::filesystem::perms::owner_read);
    std::filesystem::create_symlink("precious", directory / name);
    CHECK(DirectLine::offer({directory.path(), "/there"}));
    CHECK(std::filesystem::status(directory / "precious").permissions() == std::filesystem::perms::owner_read);
  }
  SUBCASE("a directory") {
    std::filesystem::create_directory(directory / name);
    CHECK_FALSE(DirectLine::offer({directory.path(), "/there"}));
    CHECK(std::filesystem::is_directory(directory / name));
  }
}

TEST_CASE("direct line: a long path works, a missing directory is an error") {
  if (is_without_lines()) {
    return;
  }
  const TemporaryDirectory directory;
  const auto deep = directory / std::string(200, 'd');
  std::filesystem::create_directory(deep);
  CHECK(DirectLine::offer({deep, "/there"}));
  const auto line = DirectLine::offer({directory / "missing", "/there"});
  REQUIRE_FALSE(line);
  CHECK(line.error().message.find("missing") != std::string::npos);
}

TEST_CASE("direct line: a link that the container can change is not followed") {
  if (is_without_lines()) {
    return;
  }
  const TemporaryDirectory host;
  const TemporaryDirectory elsewhere;
  std::filesystem::create_directory(host / "mount");
  std::filesystem::create_directory_symlink(elsewhere.path(), host / "mount" / "app");
  std::filesystem::create_directory_symlink(host / "mount", host / "alias");
  const std::vector<std::string> mounts = {(host / "mount").string(), (host / "mount" / "app").string()};
  const auto line = DirectLine::offer({host / "mount" / "app", "/app", mounts});
  REQUIRE_FALSE(line);
  CHECK(line.error().message.find("symbolic link") != std::string::npos);
  CHECK(std::filesystem::is_empty(elsewhere.path()));
  // A link that only the host can change is followed.
  CHECK(DirectLine::offer({host / "alias", "/app", mounts}));
}

namespace {

/// A connection that is being opened with a shared directory.
struct Opening {
  TemporaryDirectory directory;
  Streams streams = make_streams();
  FakeAgent& agent = streams.agent;
  std::future<Result<std::unique_ptr<Connection>>> connection;
  wire::Frame invitation;

  Opening() {
    agent.greet();
    connection = std::async(std::launch::async, [this] {
      return Connection::open(std::move(streams.host), Deadline::after(k_patience),
                              SharedDirectory{directory.path(), "/there"});
    });
    auto request = agent.next_request();
    REQUIRE(request);
    invitation = std::move(*request);
    REQUIRE(field(invitation.head, "op") == "line");
  }
};

}  // namespace

TEST_CASE("direct line: the connection uses it after the stream has ended") {
  if (is_without_lines()) {
    return;
  }
  Opening opening;
  const wire::Field head(opening.invitation.head);
  const auto invitation = wire::from_json<wire::LineRequest>(head);
  FakeAgent direct(visit(opening.directory, invitation, invitation.key));
  opening.agent.answer(opening.invitation);
  auto connection = opening.connection.get();
  REQUIRE(connection);
  CHECK_FALSE((*connection)->hello().detour);
  CHECK(std::filesystem::is_empty(opening.directory.path()));
  opening.agent.hang_up();

  auto call = std::async(std::launch::async, [&] {
    return (*connection)->call({{"op", "list"}}, "body", Deadline::after(k_patience), {});
  });
  const auto request = direct.next_request();
  REQUIRE(request);
  CHECK(request->body == "body");
  direct.answer(*request, {{"fine", true}}, "answer");
  const auto answer = call.get();
  REQUIRE(answer);
  CHECK(answer->body == "answer");
  CHECK((*connection)->alive());
  direct.hang_up();
  (*connection)->poll_stream();
  CHECK_FALSE((*connection)->alive());
}

TEST_CASE("direct line: if the agent cannot use it, the stream and the reason stay") {
  if (is_without_lines()) {
    return;
  }
  Opening opening;
  opening.agent.refuse(opening.invitation, "no_line");
  auto connection = opening.connection.get();
  REQUIRE(connection);
  CHECK((*connection)->hello().detour);
  CHECK(std::filesystem::is_empty(opening.directory.path()));
  auto call = std::async(std::launch::async, [&] {
    return (*connection)->call({{"op", "list"}}, {}, Deadline::after(k_patience), {});
  });
  const auto request = opening.agent.next_request();
  REQUIRE(request);
  opening.agent.answer(*request);
  CHECK(call.get());
}

TEST_CASE("direct line: a false report of a connection fails") {
  if (is_without_lines()) {
    return;
  }
  Opening opening;
  opening.agent.answer(opening.invitation);
  const auto connection = opening.connection.get();
  REQUIRE_FALSE(connection);
  CHECK(connection.error().code == ErrorCode::protocol_violation);
}

TEST_CASE("direct line: an agent that dies at the invitation is a lost connection") {
  if (is_without_lines()) {
    return;
  }
  Opening opening;
  opening.agent.hang_up();
  const auto connection = opening.connection.get();
  REQUIRE_FALSE(connection);
  CHECK(connection.error().code == ErrorCode::connection_lost);
  CHECK(std::filesystem::is_empty(opening.directory.path()));
}

TEST_CASE("direct line: without a socket the agent gets no invitation") {
  Streams streams = make_streams();
  streams.agent.greet();
  const auto connection =
      Connection::open(std::move(streams.host), Deadline::after(k_patience), SharedDirectory{"/nonexistent", "/there"});
  REQUIRE(connection);
  REQUIRE((*connection)->hello().detour);
  CHECK((*connection)->hello().detour->find("/nonexistent") != std::string::npos);
}
