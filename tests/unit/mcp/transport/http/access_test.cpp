#include "mcp/transport/http/access.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp::http;

namespace {

const std::string k_secret = "0123456789abcdef";

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("access: a token file holds one secret, or several with names") {
  const auto one = parse_tokens("\n " + k_secret + " \n", "here");
  REQUIRE(one);
  CHECK(one->at(0).secret == k_secret);
  CHECK_FALSE(one->at(0).tools);

  const auto several = parse_tokens(
      R"({"tokens": [{"name": "ci", "token": "0123456789abcdef", "tools": ["execute_command"], "container": "box"},
                     {"name": "me", "token": "fedcba9876543210"}]})",
      "here");
  REQUIRE(several);
  CHECK(several->at(0).tools == std::set<std::string>{"execute_command"});
  CHECK(several->at(0).container == "box");
  CHECK(several->at(1).name == "me");
}

TEST_CASE("access: what is wrong with a token file is said, and the secret is not") {
  for (const char* text : {"", "short-secret", "two words of a secret", "{", R"({"tokens": []})", R"({"tokens": 5})",
                           R"({"tokens": [{"name": "ci"}]})", R"({"tokens": [{"name": "", "token": "short-secret"}]})",
                           R"({"tokens": [{"name": "x", "token": "0123456789abcdef-secret", "tools": "all"}]})",
                           R"({"tokens": [{"name": "x", "token": "0123456789abcdef-secret", "container": 5}]})"}) {
    CAPTURE(text);
    const auto tokens = parse_tokens(text, "tokens.json");
    REQUIRE_FALSE(tokens);
    CHECK(tokens.error().message.find("tokens.json") != std::string::npos);
    CHECK(tokens.error().sentence().find("-secret") == std::string::npos);
  }
}

TEST_CASE("access: a token is made once, where only its owner can read it") {
  const test::TemporaryDirectory directory;
  const std::string path = (directory / "new" / "token").string();
  const auto made = token_file_or_new(path);
  REQUIRE(made);
  CHECK(made->at(0).secret.size() == 64);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(text_of(path) == made->at(0).secret + "\n");
  CHECK(token_file_or_new(path)->at(0).secret == made->at(0).secret);

  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  const auto open = token_file_or_new(path);
  REQUIRE_FALSE(open);
  CHECK(open.error().code == "open_token_file");
  CHECK(open.error().next_step == "chmod 600 " + path);
}

TEST_CASE("access: without tokens everybody is local") {
  Access access({});
  CHECK(access.open());
  CHECK(access.admit(std::nullopt, "127.0.0.1")->owner == "local");
}

TEST_CASE("access: failures of one address do not stop another") {
  Access access({{"alice", k_secret}});
  for (int i = 0; i < 10; ++i) {
    CHECK(access.admit("Bearer wrong-wrong-wrong", "10.0.0.1").error().status == 401);
  }
  CHECK(access.admit("Bearer " + k_secret, "10.0.0.1").error().status == 429);
  CHECK(access.admit("Bearer " + k_secret, "10.0.0.2")->owner == "alice");
}
