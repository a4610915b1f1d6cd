#include "docker/address.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_directory.hpp"
#include "util/fd.hpp"

using namespace dockbridge;
using docker::Address;
using docker::AddressSources;
using docker::find_engine;
using docker::parse_address;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// A home directory and an environment for one test.
class Surroundings {
 public:
  [[nodiscard]] std::string home(const std::string& below = {}) const { return m_home.path().string() + below; }
  void put(const std::string& below, const std::string& content) const {
    const fs::path path = home(below);
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  void put_context(const std::string& folder, const std::string& name, const std::string& host) const {
    const json meta = {{"Name", name}, {"Metadata", json::object()}, {"Endpoints", {{"docker", {{"Host", host}}}}}};
    put("/.docker/contexts/meta/" + folder + "/meta.json", meta.dump());
  }
  void use_context(const std::string& name) const {
    put("/.docker/config.json", json{{"currentContext", name}}.dump());
  }
  void make_socket(const std::string& below) {
    const std::string path = home(below);
    fs::create_directories(fs::path(path).parent_path());
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }

  [[nodiscard]] Result<Address> find() const {
    return find_engine({option,
                        [this](const std::string& name) -> std::optional<std::string> {
                          const auto found = environment.find(name);
                          return found == environment.end() ? std::nullopt : std::optional(found->second);
                        },
                        home()});
  }
  [[nodiscard]] Address found() const {
    const auto address = find();
    REQUIRE(address);
    return *address;
  }
  [[nodiscard]] Error not_found() const {
    const auto address = find();
    REQUIRE_FALSE(address);
    return address.error();
  }

  std::string option;
  std::map<std::string, std::string> environment;

 private:
  test::TemporaryDirectory m_home;
};

Error refusal_of(const std::string& url) {
  const auto address = parse_address(url, "DOCKER_HOST");
  REQUIRE_FALSE(address);
  return address.error();
}

/// Whether this machine has an engine. It is found before those of a home directory.
bool machine_has_engine() {
  return fs::is_socket("/var/run/docker.sock") || fs::is_socket("/run/docker.sock");
}

}  // namespace

TEST_CASE("address: a unix address is a path, a tcp address a host and port") {
  const auto unix_socket = parse_address("unix:///run/user/1000/docker.sock", "here");
  REQUIRE(unix_socket);
  CHECK(unix_socket->kind == Address::Kind::unix_socket);
  CHECK(unix_socket->socket_path == "/run/user/1000/docker.sock");
  CHECK(unix_socket->url == "unix:///run/user/1000/docker.sock");
  CHECK(unix_socket->source == "here");
  for (const std::string scheme : {"tcp", "http"}) {
    const auto tcp = parse_address(scheme + "://127.0.0.1:2375", "here");
    REQUIRE(tcp);
    CHECK(tcp->kind == Address::Kind::tcp);
    CHECK(tcp->host_port == "127.0.0.1:2375");
  }
}

TEST_CASE("address: an unsupported scheme is refused with an alternative") {
  for (const std::string url : {"ssh://user@host", "https://host:2376", "npipe:////./pipe/docker_engine", "fd://"}) {
    const Error error = refusal_of(url);
    CHECK(error.code == ErrorCode::unsupported_docker_host);
    CHECK(error.message.find(url) != std::string::npos);
    CHECK(error.message.find("DOCKER_HOST") != std::string::npos);
    CHECK(error.step().find("--via exec") != std::string::npos);
  }
}

TEST_CASE("address: an invalid one is refused with value, source and an example") {
  for (const std::string url : {"", "localhost", "/var/run/docker.sock", "unix:/var/run/docker.sock", "unix://",
                                "unix://relative.sock", "tcp://", "http://", "://x", "gopher://x", "UNIX:///x"}) {
    CAPTURE(url);
    const Error error = refusal_of(url);
    CHECK(error.code == ErrorCode::bad_docker_host);
    CHECK(error.message == "Not an engine address: '" + url + "' (from DOCKER_HOST)");
    CHECK(error.step().find("unix:///var/run/docker.sock") != std::string::npos);
  }
}

TEST_CASE("address: the option precedes DOCKER_HOST, which precedes the context") {
  Surroundings s;
  s.put_context("aaa", "remote", "tcp://context:1");
  s.use_context("remote");
  CHECK(s.found().url == "tcp://context:1");
  CHECK(s.found().source == "docker context 'remote'");
  s.environment["DOCKER_HOST"] = "tcp://variable:1";
  CHECK(s.found().url == "tcp://variable:1");
  CHECK(s.found().source == "DOCKER_HOST");
  s.option = "tcp://option:1";
  CHECK(s.found().url == "tcp://option:1");
  CHECK(s.found().source == "--docker-host");
}

TEST_CASE("address: an invalid one is an error, and no other is tried") {
  Surroundings s;
  s.put_context("aaa", "remote", "tcp://context:1");
  s.use_context("remote");
  s.environment["DOCKER_HOST"] = "nonsense";
  CHECK(s.not_found().message == "Not an engine address: 'nonsense' (from DOCKER_HOST)");
  s.environment["DOCKER_HOST"] = "tcp://variable:1";
  s.option = "ssh://far";
  CHECK(s.not_found().code == ErrorCode::unsupported_docker_host);
}

TEST_CASE("address: an empty DOCKER_HOST is ignored") {
  Surroundings s;
  s.put_context("aaa", "remote", "tcp://context:1");
  s.use_context("remote");
  s.environment["DOCKER_HOST"] = "";
  CHECK(s.found().url == "tcp://context:1");
}

TEST_CASE("address: DOCKER_CONTEXT precedes the configured context") {
  Surroundings s;
  s.put_context("aaa", "one", "tcp://one:1");
  s.put_context("bbb", "two", "unix:///two.sock");
  s.use_context("one");
  s.environment["DOCKER_CONTEXT"] = "two";
  CHECK(s.found().socket_path == "/two.sock");
  s.environment["DOCKER_CONTEXT"] = "";
  CHECK(s.found().host_port == "one:1");
}

TEST_CASE("address: contexts are read from DOCKER_CONFIG") {
  Surroundings s;
  s.put("/elsewhere/config.json", R"({"currentContext":"there"})");
  s.put("/elsewhere/contexts/meta/x/meta.json", R"({"Name":"there","Endpoints":{"docker":{"Host":"tcp://there:1"}}})");
  s.put_context("aaa", "here", "tcp://here:1");
  s.use_context("here");
  s.environment["DOCKER_CONFIG"] = s.home("/elsewhere");
  CHECK(s.found().host_port == "there:1");
}

TEST_CASE("address: an active context that does not exist is an error") {
  Surroundings s;
  s.use_context("lost");
  const Error without_any = s.not_found();
  CHECK(without_any.code == ErrorCode::no_such_context);
  CHECK(without_any.message.find("'lost'") != std::string::npos);
  s.put_context("aaa", "other", "tcp://other:1");
  CHECK(s.not_found().code == ErrorCode::no_such_context);
}

TEST_CASE("address: an unusable context is an error that names it") {
  Surroundings s;
  s.use_context("remote");
  s.put_context("aaa", "remote", "ssh://user@host");
  const Error unsupported = s.not_found();
  CHECK(unsupported.code == ErrorCode::unsupported_docker_host);
  CHECK(unsupported.message.find("docker context 'remote'") != std::string::npos);
  s.put("/.docker/contexts/meta/aaa/meta.json", R"({"Name":"remote","Endpoints":{}})");
  CHECK(s.not_found().code == ErrorCode::bad_docker_host);
}

TEST_CASE("address: damaged contexts are skipped") {
  Surroundings s;
  s.use_context("good");
  int number = 0;
  for (const std::string content : {"", "{", "null", "[]", R"({"Name":5})", R"({"Name":["good"]})"}) {
    s.put("/.docker/contexts/meta/bad" + std::to_string(++number) + "/meta.json", content);
  }
  s.put("/.docker/contexts/meta/file", "no folder");
  s.put_context("zzz", "good", "tcp://good:1");
  CHECK(s.found().host_port == "good:1");
}

TEST_CASE("address: without any setting the first usual socket is used") {
  Surroundings s;
  s.environment["XDG_RUNTIME_DIR"] = s.home("/run");
  // The documented order from last to first: each new one precedes the existing ones.
  for (const std::string below : {"/run/podman/podman.sock", "/.colima/default/docker.sock",
                                  "/.docker/desktop/docker.sock", "/.docker/run/docker.sock", "/run/docker.sock"}) {
    s.make_socket(below);
    const Address address = s.found();
    CHECK(address.source == "found");
    CHECK(address.kind == Address::Kind::unix_socket);
    CHECK(address.url == "unix://" + address.socket_path);
    if (!machine_has_engine()) {
      CHECK(address.socket_path == s.home(below));
    }
  }
}

TEST_CASE("address: the default context and an empty config mean the usual sockets") {
  for (const std::string config : {"", "{", "[]", "{}", R"({"currentContext":""})", R"({"currentContext":"default"})",
                                   R"({"currentContext":7})"}) {
    CAPTURE(config);
    Surroundings s;
    s.make_socket("/.docker/run/docker.sock");
    s.put("/.docker/config.json", config);
    CHECK(s.found().source == "found");
  }
  Surroundings s;
  s.make_socket("/.docker/run/docker.sock");
  s.use_context("other");
  s.environment["DOCKER_CONTEXT"] = "default";
  CHECK(s.found().source == "found");
}

TEST_CASE("address: a file in place of a socket is not an engine") {
  Surroundings s;
  s.put("/.docker/run/docker.sock", "");
  const auto address = s.find();
  if (address) {
    CHECK(address->socket_path != s.home("/.docker/run/docker.sock"));
  } else {
    CHECK(address.error().code == ErrorCode::no_engine);
    CHECK(address.error().message.find("/var/run/docker.sock") != std::string::npos);
    CHECK(address.error().message.find(s.home("/.docker/run/docker.sock")) != std::string::npos);
  }
}

TEST_CASE("address: an empty DOCKER_CONFIG is ignored") {
  Surroundings s;
  s.put_context("aaa", "remote", "tcp://there:1");
  s.use_context("remote");
  s.environment["DOCKER_CONFIG"] = "";
  CHECK(s.found().host_port == "there:1");
}

TEST_CASE("address: a TCP engine is refused if a variable asks for TLS") {
  for (const char* name : {"DOCKER_TLS_VERIFY", "DOCKER_TLS", "DOCKER_CERT_PATH"}) {
    CAPTURE(name);
    Surroundings s;
    s.put_context("aaa", "remote", "tcp://context:2376");
    s.use_context("remote");
    CHECK(s.found().host_port == "context:2376");
    s.environment[name] = "1";
    const auto check_refusal = [&](const std::string& url) {
      const Error error = s.not_found();
      CHECK(error.code == ErrorCode::unsupported_docker_host);
      CHECK(error.message.find(url) != std::string::npos);
      CHECK(error.message.find("TLS") != std::string::npos);
      CHECK(error.message.find(name) != std::string::npos);
      CHECK(error.step().find("--via exec") != std::string::npos);
    };
    check_refusal("tcp://context:2376");
    s.environment["DOCKER_HOST"] = "tcp://variable:2376";
    check_refusal("tcp://variable:2376");
    s.option = "http://option:2376";
    check_refusal("http://option:2376");
    s.option = "https://option:2376";
    CHECK(s.not_found().code == ErrorCode::unsupported_docker_host);
    s.option = "unix:///engine.sock";
    CHECK(s.found().socket_path == "/engine.sock");
    s.option = "tcp://option:2375";
    s.environment[name] = "";
    CHECK(s.found().host_port == "option:2375");
  }
}

TEST_CASE("address: a TCP engine is refused if its context has TLS settings") {
  Surroundings s;
  s.put_context("aaa", "remote", "tcp://remote:2376");
  s.put_context("bbb", "other", "tcp://other:2375");
  s.use_context("remote");
  fs::create_directories(s.home("/.docker/contexts/tls/aaa/docker"));
  CHECK(s.found().host_port == "remote:2376");
  SUBCASE("files") {
    s.put("/.docker/contexts/tls/aaa/docker/ca.pem", "pem");
  }
  SUBCASE("an unverified certificate") {
    s.put("/.docker/contexts/meta/aaa/meta.json",
          R"({"Name":"remote","Endpoints":{"docker":{"Host":"tcp://remote:2376","SkipTLSVerify":true}}})");
  }
  SUBCASE("material that cannot be listed") {
    fs::remove(s.home("/.docker/contexts/tls/aaa/docker"));
    s.put("/.docker/contexts/tls/aaa/docker", "a file");
  }
  const Error error = s.not_found();
  CHECK(error.code == ErrorCode::unsupported_docker_host);
  CHECK(error.message.find("docker context 'remote' has TLS settings") != std::string::npos);
  s.use_context("other");
  CHECK(s.found().host_port == "other:2375");
  s.put_context("aaa", "remote", "unix:///engine.sock");
  s.use_context("remote");
  CHECK(s.found().socket_path == "/engine.sock");
}
