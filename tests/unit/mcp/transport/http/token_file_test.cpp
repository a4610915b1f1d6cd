#include "mcp/transport/http/token_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp::http;

namespace {

const std::string k_file_secret = "0123456789abcdef";

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string write_file(const std::string& path, mode_t mode = 0600) {
  std::ofstream(path) << k_file_secret << "\n";
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  return path;
}

/// The error for a file with these entries.
std::string complaint(const std::string& entries) {
  const auto tokens = parse_tokens(R"({"tokens": [)" + entries + "]}", "tokens.json");
  REQUIRE_FALSE(tokens);
  CHECK(tokens.error().code == ErrorCode::bad_token_file);
  CHECK(tokens.error().sentence().find("-secret") == std::string::npos);
  return tokens.error().message;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("token_file: accepts one secret, or several with names") {
  const auto one = parse_tokens("\n " + k_file_secret + " \n", "here");
  REQUIRE(one);
  CHECK(one->at(0).secret == k_file_secret);
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

TEST_CASE("token_file: an error names the problem and the entry, never a secret") {
  for (const char* text : {"", "short-secret", "two words of a secret", "{", R"({"tokens": []})", R"({"tokens": 5})",
                           R"({"tokens": [{"name": "ci"}]})", R"({"tokens": [{"name": "", "token": "short-secret"}]})",
                           R"({"tokens": [{"name": "x", "token": "0123456789abcdef-secret", "tools": "all"}]})",
                           R"({"tokens": [{"name": "x", "token": "0123456789abcdef-secret", "container": 5}]})",
                           R"({"tokens": {"x": "0123456789abcdef-secret"}})", R"(["0123456789abcdef-secret"])",
                           "0123456789abcdef-secret\n0123456789abcdef-secret", "0123456789abcdef-secret\x01"}) {
    CAPTURE(text);
    const auto tokens = parse_tokens(text, "tokens.json");
    REQUIRE_FALSE(tokens);
    CHECK(holds(tokens.error().message, "tokens.json"));
    CHECK_FALSE(holds(tokens.error().sentence(), "-secret"));
  }
}

TEST_CASE("token_file: an unknown key is an error, not an unlimited token") {
  CHECK(holds(complaint(R"({"name": "ci", "token": "0123456789abcdef-secret", "toolz": ["file_read"]})"),
              "token 'ci' has the unknown key 'toolz'"));
  const auto outside =
      parse_tokens(R"({"tokens": [{"name": "ci", "token": "0123456789abcdef-secret"}], "tools": []})", "here");
  REQUIRE_FALSE(outside);
  CHECK(holds(outside.error().message, "unknown key 'tools'"));
}

TEST_CASE("token_file: a repeated key is an error") {
  complaint(R"({"name": "ci", "token": "0123456789abcdef-secret", "tools": ["file_read"], "tools": ["file_ls"]})");
  CHECK_FALSE(parse_tokens(R"({"tokens": [{"name": "a", "token": "0123456789abcdef"}], "tokens": []})", "here"));
}

TEST_CASE("token_file: one name with different rights, or one secret twice, is an error") {
  const std::string first = R"({"name": "ci", "token": "0123456789abcdef-secret", "tools": ["file_read"]},)";
  CHECK(holds(complaint(first + R"({"name": "ci", "token": "fedcba9876543210-secret"})"), "token 'ci' appears twice"));
  CHECK(
      holds(complaint(first + R"({"name": "ci", "token": "fedcba9876543210-secret", "tools": ["file_ls"]})"), "'ci'"));
  const std::string same = complaint(first + R"({"name": "me", "token": "0123456789abcdef-secret"})");
  CHECK(holds(same, "token 'me' has the same secret as 'ci'"));
  const auto replaced = parse_tokens(
      R"({"tokens": [{"name": "ci", "token": "0123456789abcdef"}, {"name": "ci", "token": "fedcba9876543210"}]})", "x");
  REQUIRE(replaced);
  CHECK(replaced->size() == 2);
}

TEST_CASE("token_file: wrong types are errors that name the entry") {
  for (const char* tools : {R"([])", R"("file_read")", R"([5])", R"([["file_read"]])", R"({"file_read": true})", "null",
                            "true", R"(["file_read", null])"}) {
    CAPTURE(tools);
    CHECK(holds(complaint(R"({"name": "ci", "token": "0123456789abcdef-secret", "tools": )" + std::string(tools) + "}"),
                "token 'ci' needs 'tools'"));
  }
  for (const char* container : {"5", R"("")", "null", "[]"}) {
    CAPTURE(container);
    CHECK(holds(
        complaint(R"({"name": "ci", "token": "0123456789abcdef-secret", "container": )" + std::string(container) + "}"),
        "token 'ci' needs a 'container'"));
  }
  const std::string good = R"({"name": "ci", "token": "0123456789abcdef-secret"},)";
  CHECK(holds(complaint(good + R"({"name": 5, "token": "fedcba9876543210-secret"})"), "token number 2"));
  CHECK(holds(complaint(good + R"({"name": "a\nb", "token": "fedcba9876543210-secret"})"), "needs a 'name'"));
  CHECK(holds(complaint(good + R"({"name": "me", "token": 5})"), "token 'me' needs a 'token'"));
  CHECK(holds(complaint(good + R"({"name": "me", "token": "with a blank -secret"})"), "token 'me' needs a 'token'"));
  CHECK(holds(complaint(good + R"("fedcba9876543210-secret")"), "token number 2 is not an object"));
}

TEST_CASE("token_file: a token is created once, readable only by its owner") {
  const dockbridge::test::TemporaryDirectory directory;
  const std::string path = (directory / "new" / "token").string();
  const auto made = token_file_or_new(path);
  REQUIRE(made);
  CHECK(made->at(0).secret.size() == 64);
  CHECK(made->at(0).secret.size() >= k_safe_secret_length);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(text_of(path) == made->at(0).secret + "\n");
  CHECK(token_file_or_new(path)->at(0).secret == made->at(0).secret);

  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  const auto open = token_file_or_new(path);
  REQUIRE_FALSE(open);
  CHECK(open.error().code == ErrorCode::open_token_file);
  CHECK(open.error().next_step == "chmod 600 " + path);
}

TEST_CASE("token_file: any permission of group or others is refused") {
  const dockbridge::test::TemporaryDirectory directory;
  const std::string path = write_file((directory / "token").string());
  for (const mode_t mode : {0604, 0640, 0620, 0602, 0610, 0601, 0666}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(read_token_file(path).error().code == ErrorCode::open_token_file);
  }
  REQUIRE(::chmod(path.c_str(), 0400) == 0);
  CHECK(read_token_file(path));
}

TEST_CASE("token_file: a link, FIFO, directory or device is refused without blocking") {
  const dockbridge::test::TemporaryDirectory directory;
  const std::string file = write_file((directory / "file").string());
  const std::string link = (directory / "link").string();
  REQUIRE(::symlink(file.c_str(), link.c_str()) == 0);
  CHECK(holds(read_token_file(link).error().message, "is a symbolic link"));
  CHECK(holds(token_file_or_new(link).error().message, "is a symbolic link"));

  const std::string dangling = (directory / "dangling").string();
  REQUIRE(::symlink("nowhere", dangling.c_str()) == 0);
  CHECK_FALSE(token_file_or_new(dangling));
  CHECK(::access((directory / "nowhere").c_str(), F_OK) != 0);

  const std::string fifo = (directory / "fifo").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(holds(read_token_file(fifo).error().message, "is not a regular file"));
  CHECK_FALSE(token_file_or_new(directory.path().string()));
  CHECK(holds(read_token_file("/dev/null").error().message, "is not a regular file"));
}

TEST_CASE("token_file: a file of another user is refused") {
  REQUIRE_MESSAGE(::geteuid() == 0, "this test gives a file to another user, which takes root");
  const dockbridge::test::TemporaryDirectory directory;
  const std::string path = write_file((directory / "token").string());
  REQUIRE(::chown(path.c_str(), 12345, 0) == 0);
  const auto foreign = read_token_file(path);
  REQUIRE_FALSE(foreign);
  CHECK(holds(foreign.error().message, "belongs to another user"));
  CHECK(foreign.error().next_step == "chown 0 " + path);
}

TEST_CASE("token_file: a file beyond the size limit is refused") {
  const dockbridge::test::TemporaryDirectory directory;
  const std::string path = write_file((directory / "token").string());
  std::ofstream(path) << std::string(2'000'000, 'x');
  CHECK(holds(read_token_file(path).error().message, "is too large"));
}
