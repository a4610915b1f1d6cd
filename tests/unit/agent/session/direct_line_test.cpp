#include "agent/session/direct_line.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_directory.hpp"
#include "util/socket_address.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

struct Listening {
  TemporaryDirectory directory;
  std::filesystem::path path = directory / "line";
  Fd listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};

  Listening() {
    const sockaddr_un address = socket_address(directory.fd(), "line");
    REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
  }
  [[nodiscard]] wire::LineRequest invitation() const {
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return {path.string(), info.st_dev, info.st_ino, "secret"};
  }
  /// Bytes that the session sent; empty if it did not connect.
  [[nodiscard]] std::string received() const {
    std::string all;
    while (Fd peer{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)}) {
      std::string bytes(100, '\0');
      const ssize_t got = ::recv(peer.get(), bytes.data(), bytes.size(), 0);
      all += bytes.substr(0, got > 0 ? static_cast<std::size_t>(got) : 0);
    }
    return all;
  }
};

std::string rejection_of(const wire::LineRequest& invitation) {
  const auto line = agent::join_line(invitation);
  REQUIRE_FALSE(line);
  CHECK(line.error().code == ErrorCode::no_line);
  return line.error().message;
}

}  // namespace

TEST_CASE("direct line: the session sends only the key") {
  const Listening listening;
  CHECK(agent::join_line(listening.invitation()));
  CHECK(listening.received() == "secret");
}

TEST_CASE("direct line: a full backlog is reported at once") {
  const Listening listening;
  std::vector<Fd> others;
  while (auto line = agent::join_line(listening.invitation())) {
    others.push_back(std::move(*line));
  }
  CHECK(others.size() == 2);
  CHECK(rejection_of(listening.invitation()).find("unavailable") != std::string::npos);
}

TEST_CASE("direct line: another file in place of the socket is rejected") {
  const Listening listening;
  wire::LineRequest invitation = listening.invitation();
  SUBCASE("another inode") {
    ++invitation.inode;
  }
  SUBCASE("another device") {
    ++invitation.device;
  }
  SUBCASE("a link to the socket") {
    std::filesystem::create_symlink("line", listening.directory / "link");
    invitation.path = (listening.directory / "link").string();
  }
  CHECK(rejection_of(invitation).find("not the socket of the host") != std::string::npos);
  CHECK(listening.received().empty());
}

TEST_CASE("direct line: an unreachable socket is reported with the reason") {
  Listening listening;
  wire::LineRequest invitation = listening.invitation();
  SUBCASE("no listener") {
    listening.listener.reset();
    CHECK(rejection_of(invitation).find("Connection refused") != std::string::npos);
  }
  SUBCASE("no such file") {
    std::filesystem::remove(listening.path);
    CHECK(rejection_of(invitation).find("No such file") != std::string::npos);
  }
  SUBCASE("not a socket") {
    std::filesystem::remove(listening.path);
    std::ofstream(listening.path) << "text";
    CHECK(rejection_of(listening.invitation()).find("Connection refused") != std::string::npos);
  }
}
