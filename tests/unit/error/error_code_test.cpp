#include "error/error_code.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "error/error.hpp"
#include "wire/error_message.hpp"

using namespace dockbridge;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view k_begin = "<!-- generated from src/error/error_code.cpp: begin -->\n";
constexpr std::string_view k_end = "<!-- generated: end -->\n";
constexpr std::array<std::string_view, 5> k_titles = {"Calls", "Processes", "Files", "Container and engine",
                                                      "Start and HTTP"};

std::string content_of(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

std::string tables() {
  std::string text;
  for (std::size_t group = 0; group < k_titles.size(); ++group) {
    text += fmt::format("\n## {}\n\n| code | meaning | next step |\n|---|---|---|\n", k_titles.at(group));
    for (const ErrorDescription& row : error_table()) {
      if (static_cast<std::size_t>(row.group) == group) {
        text += fmt::format("| `{}` | {} | {}. |\n", row.name, row.meaning, row.next_step);
      }
    }
  }
  return text + '\n';
}

/// All sources outside src/error as one text.
std::string sources() {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(DOCKBRIDGE_SOURCE_DIR) / "src")) {
    if (entry.is_regular_file() && entry.path().parent_path().filename() != "error") {
      text += content_of(entry.path());
    }
  }
  return text;
}

}  // namespace

TEST_CASE("errors: every code has a unique name, a meaning and a next step") {
  std::set<std::string_view> names;
  for (const ErrorDescription& row : error_table()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(error_code_named(row.name) == row.code);
    CHECK(name_of(row.code) == row.name);
    CHECK(row.meaning.ends_with('.'));
    CHECK_FALSE(row.next_step.empty());
    CHECK_FALSE(row.next_step.ends_with('.'));
  }
  CHECK_FALSE(error_code_named("no_such_code"));
  CHECK_FALSE(error_code_named(""));
}

TEST_CASE("errors: the program uses every code") {
  const std::string all = sources();
  for (const ErrorDescription& row : error_table()) {
    CAPTURE(row.name);
    const std::string use = fmt::format("ErrorCode::{}", row.name);
    bool used = false;
    for (std::size_t at = all.find(use); at != std::string::npos && !used; at = all.find(use, at + 1)) {
      const char after = all[at + use.size()];
      used = after != '_' && std::isalnum(static_cast<unsigned char>(after)) == 0;
    }
    CHECK(used);
  }
}

// DOCKBRIDGE_WRITE_DOCS=1 rewrites the page instead.
TEST_CASE("errors: docs/errors.md has the rows of the error table") {
  const fs::path page = fs::path(DOCKBRIDGE_SOURCE_DIR) / "docs/errors.md";
  const std::string text = content_of(page);
  const std::size_t begin = text.find(k_begin);
  const std::size_t end = text.find(k_end);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::string wanted = text.substr(0, begin + k_begin.size()) + tables() + text.substr(end);
  if (std::getenv("DOCKBRIDGE_WRITE_DOCS") != nullptr) {
    std::ofstream(page) << wanted;
  } else {
    CHECK(text == wanted);
  }
}

TEST_CASE("errors: an error without a next step uses the one of the table") {
  const Error general{ErrorCode::no_such_process, "Process not found: p9"};
  CHECK(general.step() == describe(ErrorCode::no_such_process).next_step);
  CHECK(general.sentence() == "Process not found: p9. " + std::string(general.step()));
  CHECK(Error{ErrorCode::no_such_process, "Process not found: p9", "Run it again"}.step() == "Run it again");
}

TEST_CASE("errors: the wire form keeps code, message and next step") {
  const Error sent{ErrorCode::file_changed, "File has changed: /app/x", "Read it again"};
  const Error received = wire::error_from(wire::Field(wire::to_json(sent)));
  CHECK(received.code == sent.code);
  CHECK(received.message == sent.message);
  CHECK(received.next_step == sent.next_step);
}

TEST_CASE("errors: a malformed error of the agent is rejected") {
  for (const char* bad :
       {R"({})", R"({"code": "io_error"})", R"({"code": 5, "message": "m", "nextStep": ""})",
        R"({"code": "made_up", "message": "m", "nextStep": ""})",
        R"({"code": "io_error", "message": 5, "nextStep": ""})", R"({"code": "io_error", "message": "m"})"}) {
    CAPTURE(bad);
    CHECK_THROWS(wire::error_from(wire::Field(nlohmann::json::parse(bad))));
  }
}

TEST_CASE("errors: the table marks each step that advises to make the call again") {
  const std::regex again(
      "([Cc]all|[Rr]un the command|Start the command|[Tt]ry|Send the request)\\b[^.]*\\b(again|later)|Retry|repeat");
  for (const ErrorDescription& row : error_table()) {
    CAPTURE(row.name);
    CHECK(row.advises_repetition == std::regex_search(std::string(row.next_step), again));
  }
}

TEST_CASE("errors: after a possible effect the check comes first, and no step advises to call again") {
  const auto sentence = [](ErrorCode code, const std::string& step = "") {
    return Error{code, "It broke", step}
        .with_effect("the input may have been delivered", "check_process p3")
        .sentence();
  };
  const std::string checked = "It broke; the input may have been delivered. check_process p3";
  CHECK(sentence(ErrorCode::connection_lost) == checked);
  CHECK(sentence(ErrorCode::connection_lost, "Call again: that reconnects. Processes keep running") == checked);
  CHECK(sentence(ErrorCode::timed_out) == checked);
  CHECK(sentence(ErrorCode::worker_gone) == checked);
  CHECK(sentence(ErrorCode::keeper_busy) == checked);
  CHECK(sentence(ErrorCode::keeper_gone) == checked);
  CHECK(sentence(ErrorCode::spool_damaged, "Run the command again") == checked);
  CHECK(sentence(ErrorCode::container_paused) == checked + ". Resume it with docker unpause");
}
