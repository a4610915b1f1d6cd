#include "mcp/server.hpp"
#include "support/field.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dockbridge::mcp;
using dockbridge::test::field;

namespace {

Server example() {
  Tool tool;
  tool.name = "look";
  tool.title = "Look around";
  tool.description = "Looks.";
  tool.input_schema = {{"type", "object"}};
  tool.output_schema = {{"type", "object"}};
  tool.annotations = {.read_only = true, .destructive = false, .idempotent = true, .open_world = false};
  return Server({"box", "The Box", "1.2", "Be kind.", "data:image/svg+xml,<svg/>"}, {{tool}});
}

}  // namespace

TEST_CASE("server: a known handshake revision is accepted, otherwise the newest is offered") {
  CHECK(negotiate("2024-11-05") == Revision::v2024_11_05);
  CHECK(negotiate("2025-03-26") == Revision::v2025_03_26);
  CHECK(negotiate("2025-06-18") == Revision::v2025_06_18);
  CHECK(negotiate("2025-11-25") == Revision::v2025_11_25);
  for (const json& other : {json("2026-07-28"), json("2099-01-01"), json(""), json(5), json()}) {
    CHECK(negotiate(other) == Revision::v2025_11_25);
  }
}

TEST_CASE("server: a tool has only the fields that the revision defines") {
  const Server server = example();
  const auto entry = [&](Revision revision) {
    return field(json::parse(dump(*server.lists.tools(revision, Representation::structured))), "tools", 0);
  };
  const json oldest = entry(Revision::v2024_11_05);
  CHECK(oldest == json::parse(R"({"name":"look","description":"Looks.","inputSchema":{"type":"object"}})"));
  const json second = entry(Revision::v2025_03_26);
  CHECK(field(second, "annotations") ==
        json::parse(R"({"title":"Look around","readOnlyHint":true,"openWorldHint":false})"));
  CHECK_FALSE(second.contains("outputSchema"));
  for (const Revision revision : {Revision::v2025_06_18, Revision::v2025_11_25, Revision::v2026_07_28}) {
    CHECK(field(entry(revision), "title") == "Look around");
    CHECK(field(entry(revision), "outputSchema", "type") == "object");
  }
}

TEST_CASE("server: tools/list keeps the order in which a schema names its arguments") {
  Tool tool;
  tool.name = "look";
  tool.input_schema = {{"type", "object"},
                       {"properties", {{"where", {{"type", "string"}}}, {"again", {{"type", "boolean"}}}}}};
  const Server server({"box", "The Box", "1.2", ""}, {{tool}});
  const std::string list = dump(server.lists.tools_text(Revision::v2025_11_25, Representation::text));
  CHECK(list.find("\"where\"") < list.find("\"again\""));
  CHECK(list.find("\"again\"") != std::string::npos);
}

TEST_CASE("server: a result has only the fields that the revision defines") {
  const Server server = example();
  const ToolResult result{"hello", {{"n", 1}}};
  const auto seen = [&](Revision revision) {
    return server.format.call_result(result, revision, Representation::structured);
  };
  for (const Revision revision : {Revision::v2024_11_05, Revision::v2025_03_26}) {
    CHECK(seen(revision) == json::parse(R"({"content":[{"type":"text","text":"hello"}],"isError":false})"));
  }
  CHECK(field(seen(Revision::v2025_06_18), "structuredContent", "n") == 1);
  CHECK_FALSE(seen(Revision::v2025_11_25).contains("resultType"));
  const json stateless = seen(Revision::v2026_07_28);
  CHECK(field(stateless, "resultType") == "complete");
  CHECK(field(stateless, "_meta", k_meta_server_info, "name") == "box");
}

TEST_CASE("server: the handshake has name, revision and instructions") {
  const Server server = example();
  const json old = server.initialize_result(Revision::v2024_11_05);
  CHECK(field(old, "protocolVersion") == "2024-11-05");
  CHECK(field(old, "serverInfo") == json{{"name", "box"}, {"version", "1.2"}});
  CHECK(field(old, "instructions") == "Be kind.");
  CHECK(field(old, "capabilities", "tools").is_object());
  CHECK(field(server.initialize_result(Revision::v2025_11_25), "serverInfo", "title") == "The Box");
  const json discovered = server.discover_result();
  CHECK(field(discovered, "supportedVersions") == json::array({"2026-07-28"}));
  CHECK(field(discovered, "instructions") == "Be kind.");
}

TEST_CASE("server: revisions that define icons get one") {
  const Server server = example();
  const json icons = json::parse(R"([{"src":"data:image/svg+xml,<svg/>","mimeType":"image/svg+xml","sizes":["any"]}])");
  CHECK(field(server.initialize_result(Revision::v2025_11_25), "serverInfo", "icons") == icons);
  CHECK(field(server.discover_result(), "_meta", k_meta_server_info, "icons") == icons);
  CHECK_FALSE(field(server.initialize_result(Revision::v2025_06_18), "serverInfo").contains("icons"));
}

TEST_CASE("server: the cached text of the list of tools equals the list") {
  const Server server = example();
  for (const Revision revision : {Revision::v2024_11_05, Revision::v2025_11_25, Revision::v2026_07_28}) {
    for (const Representation representation : {Representation::text, Representation::structured}) {
      CHECK(dump(server.lists.tools_text(revision, representation)) ==
            dump(*server.lists.tools(revision, representation)));
    }
  }
}

TEST_CASE("server: a tool is found by its exact name") {
  const Server server = example();
  REQUIRE(server.catalogue.find_tool("look") != nullptr);
  CHECK(server.catalogue.find_tool("look")->title == "Look around");
  CHECK(server.catalogue.find_tool("Look") == nullptr);
  CHECK(server.catalogue.find_tool("") == nullptr);
}

TEST_CASE("server: the text representation has no output schemas and structuredContent") {
  const Server server = example();
  ToolResult result{"hello", {{"n", 1}}};
  result.facts = {{"exitCode", 0}};
  for (const Revision revision : {Revision::v2025_06_18, Revision::v2025_11_25, Revision::v2026_07_28}) {
    const json entry = field(*server.lists.tools(revision, Representation::text), "tools", 0);
    CHECK_FALSE(entry.contains("outputSchema"));
    const json seen = server.format.call_result(result, revision, Representation::text);
    CHECK_FALSE(seen.contains("structuredContent"));
    CHECK(field(seen, "content", 0, "text") == "hello");
    CHECK(field(seen, "_meta", k_meta_result) == json{{"exitCode", 0}});
  }
}

TEST_CASE("server: annotations that equal the defaults of the specification are left out") {
  Tool tool;
  tool.name = "change";
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = true, .open_world = true};
  tool.meta = {{"vendor/key", 1}};
  const Server server({"box", "The Box", "1.2", ""}, {{tool}});
  const json entry = field(*server.lists.tools(Revision::v2025_11_25, Representation::text), "tools", 0);
  CHECK(field(entry, "annotations") == json{{"idempotentHint", true}});
  CHECK(field(entry, "_meta") == json{{"vendor/key", 1}});
}
