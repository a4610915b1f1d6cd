#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/field.hpp"
#include "support/temporary_directory.hpp"
#include "tools/toolbox.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using dockbridge::test::field;
using test::FakeAgent;
namespace fs = std::filesystem;

namespace {

/// file_download from a scripted agent into an empty directory.
struct Copying {
  test::TemporaryDirectory host;
  test::World world;
  mcp::Interruption interruption;

  explicit Copying(const test::FakeContainer::Reaction& react) : world(react) {}

  mcp::ToolResult download() {
    tools::Settings settings;
    settings.host_directories = *tools::HostDirectories::open({host.path().string()}, "");
    const auto resolve = [&](const mcp::CallContext&) -> sandbox::Sandbox& { return world.sandbox; };
    const auto tools = tools::all_tools(resolve, settings);
    const mcp::CallContext context{"call", "local", interruption};
    return tools.back().call(
        {{"filePath", "/app/file"}, {"hostPath", (host / "file").string()}, {"rationale", "a test"}}, context);
  }
  [[nodiscard]] std::string content() const {
    std::ifstream file(host / "file", std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

const std::string k_revision(32, 'a');

using Piece = std::pair<test::json, std::string>;  // head and body

Piece piece(const test::json& offset, const std::string& body, int checked = 0) {
  test::json head = {{"staging", true}, {"offset", offset}, {"checked", checked}};
  return {head, body};
}

Piece last(int offset, const std::string& body, int checked) {
  test::json head = {{"offset", offset}, {"checked", checked}, {"revision", k_revision}};
  return {head, body};
}

/// Announces a size, then replies to each request with the next piece. The last piece is repeated.
test::FakeContainer::Reaction agent_of(const test::json& size, std::vector<Piece> pieces) {
  return [=, at = std::make_shared<std::size_t>(0)](FakeAgent& agent, const wire::Frame& request) {
    const std::string op = request.head.at("op");
    if (op == "file.open") {
      agent.answer(request, {{"staging", true}, {"size", size}, {"mode", 0644}});
    } else if (op == "file.next") {
      const Piece& piece = pieces[std::min((*at)++, pieces.size() - 1)];
      agent.answer(request, piece.first, piece.second);
    } else {
      agent.answer(request);
    }
  };
}

std::string code_of(const mcp::ToolResult& result) {
  return result.is_error ? field(result.structured, "error", "code").get<std::string>() : "";
}

}  // namespace

TEST_CASE("file_download: pieces with holes between them become one sparse file") {
  Copying copying(agent_of(40'000'000, {piece(0, "start"), piece(20'000'000, "middle"), piece(40'000'000, "", 1),
                                        last(40'000'000, "", 40'000'000)}));
  const auto result = copying.download();
  REQUIRE(code_of(result).empty());
  CHECK(field(result.structured, "revision") == k_revision);
  struct stat info {};
  REQUIRE(::stat((copying.host / "file").c_str(), &info) == 0);
  CHECK(info.st_size == 40'000'000);
  CHECK(info.st_blocks * 512 < 1'000'000);
  const std::string content = copying.content();
  CHECK(content.substr(0, 5) == "start");
  CHECK(content.substr(20'000'000, 6) == "middle");
  CHECK(content.find_first_not_of('\0', 20'000'006) == std::string::npos);
}

TEST_CASE("file_download: an agent that violates the protocol leaves no file on the host") {
  Piece without_offset = piece(0, "x");
  without_offset.first.erase("offset");
  Piece strange = last(0, "1234567890", 10);
  strange.first["revision"] = 7;
  const std::vector<std::pair<const char*, std::vector<Piece>>> attacks = {
      {"more than announced", {piece(0, "12345678901")}},
      {"much more than announced", {piece(0, std::string(1024 * 1024, 'x'))}},
      {"behind the end", {piece(11, "")}},
      {"far behind the end", {piece(0xFFFFFFFFFFFFFFFF, "x")}},
      {"overlap", {piece(0, "12345"), piece(4, "x")}},
      {"backwards", {piece(5, "12345"), piece(0, "x")}},
      {"no progress", {piece(0, "")}},
      {"no progress of the check", {piece(10, ""), piece(10, "")}},
      {"a check beyond the end", {piece(10, "", 11)}},
      {"a check that goes back", {piece(10, "", 5), piece(10, "", 4)}},
      {"the end too early", {last(0, "12345", 5)}},
      {"a negative offset", {piece(-1, "x")}},
      {"no offset", {without_offset}},
      {"a revision of another type", {strange}}};
  for (const auto& [name, pieces] : attacks) {
    CAPTURE(name);
    Copying copying(agent_of(10, pieces));
    CHECK(code_of(copying.download()) == "protocol_violation");
    CHECK(fs::is_empty(copying.host.path()));
  }
  for (const test::json& size : {test::json(-1), test::json("10"), test::json(0x8000000000000000ULL)}) {
    CAPTURE(size.dump());
    Copying copying(agent_of(size, {piece(0, "x")}));
    CHECK(code_of(copying.download()) == "protocol_violation");
    CHECK(fs::is_empty(copying.host.path()));
  }
}

TEST_CASE("file_download: a size beyond the file system's limit is an error") {
  Copying copying(agent_of(0x7FFFFFFFFFFFFFFF, {piece(0, "x"), piece(0, "x")}));
  const std::string code = code_of(copying.download());
  CHECK((code == "host_file" || code == "protocol_violation"));  // some file systems accept any size
  CHECK(fs::is_empty(copying.host.path()));
}

TEST_CASE("file_download: a file that changed during the copy leaves no file on the host") {
  Copying copying([](FakeAgent& agent, const wire::Frame& request) {
    const std::string op = request.head.at("op");
    op == "file.open" ? agent.answer(request, {{"staging", true}, {"size", 10}, {"mode", 0644}})
                      : agent.refuse(request, "file_changed");
  });
  CHECK(code_of(copying.download()) == "file_changed");
  CHECK(fs::is_empty(copying.host.path()));
}
