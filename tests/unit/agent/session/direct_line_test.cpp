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
  /// What a session that was invited told the listener, if it came at all.
  [[nodiscard]] std::string heard() const {
    std::string all;
    while (Fd visitor{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)}) {
      std::string words(100, '\0');
      const ssize_t got = ::recv(visitor.get(), words.data(), words.size(), 0);
      all += words.substr(0, got > 0 ? static_cast<std::size_t>(got) : 0);
    }
    return all;
  }
};

std::string refusal_of(const wire::LineRequest& invitation) {
  const auto line = agent::join_line(invitation);
  REQUIRE_FALSE(line);
  CHECK(line.error().code == ErrorCode::no_line);
  return line.error().message;
}

}  // namespace

TEST_CASE("who is invited to a socket comes and says the key and nothing else") {
  const Listening listening;
  CHECK(agent::join_line(listening.invitation()));
  CHECK(listening.heard() == "secret");
}

TEST_CASE("a socket at which too many wait is not waited for") {
  const Listening listening;
  std::vector<Fd> others;
  while (auto line = agent::join_line(listening.invitation())) {
    others.push_back(std::move(*line));
  }
  CHECK(others.size() == 2);
  CHECK(refusal_of(listening.invitation()).find("unavailable") != std::string::npos);
}

TEST_CASE("a file that is not the one the host has made is not touched") {
  const Listening listening;
  wire::LineRequest invitation = listening.invitation();
  SUBCASE("another inode") {
    ++invitation.inode;
  }
  SUBCASE("another device") {
    ++invitation.device;
  }
  SUBCASE("a link to it") {
    std::filesystem::create_symlink("line", listening.directory / "link");
    invitation.path = (listening.directory / "link").string();
  }
  CHECK(refusal_of(invitation).find("not the socket of the host") != std::string::npos);
  CHECK(listening.heard().empty());
}

TEST_CASE("a socket that cannot be reached is a refusal with the reason") {
  Listening listening;
  wire::LineRequest invitation = listening.invitation();
  SUBCASE("nobody listens") {
    listening.listener.reset();
    CHECK(refusal_of(invitation).find("Connection refused") != std::string::npos);
  }
  SUBCASE("it is not there") {
    std::filesystem::remove(listening.path);
    CHECK(refusal_of(invitation).find("No such file") != std::string::npos);
  }
  SUBCASE("it is no socket") {
    std::filesystem::remove(listening.path);
    std::ofstream(listening.path) << "text";
    CHECK(refusal_of(listening.invitation()).find("Connection refused") != std::string::npos);
  }
}
