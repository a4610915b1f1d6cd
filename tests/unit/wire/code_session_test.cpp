#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/field.hpp"
#include "wire/code_session.hpp"

using namespace dockbridge;
using dockbridge::test::field;
using nlohmann::json;

namespace {

/// The session in a message; the path of the bad field if it is malformed.
Result<wire::CodeSession> read(const json& head) {
  return wire::message_from<wire::CodeSession>(head, ErrorCode::bad_request);
}

}  // namespace

TEST_CASE("wire: a code session survives the round trip") {
  wire::CodeSession session;
  session.kind = wire::CodeKind::shell;
  session.name = "build-1.x_y";
  session.interpreter = "/opt/venv";
  session.idle_limit = milliseconds(3'600'000);
  session.may_use_ipython = false;
  session.warm_interpreters = 5;
  const json head = wire::to_json(session);
  CHECK(field(head, "kind") == "shell");
  const auto received = read(head);
  REQUIRE(received);
  CHECK(wire::to_json(*received) == head);
}

TEST_CASE("wire: a code session without options has defaults") {
  const auto received = read({{"kind", "python"}});
  REQUIRE(received);
  CHECK(received->name.empty());
  CHECK(received->idle_limit.count() == 0);
  CHECK(received->warm_interpreters == 0);
}

TEST_CASE("wire: a malformed code session names its field") {
  const json good = {{"kind", "python"}, {"name", "a"}};
  for (const auto& [key, value] : std::vector<std::pair<const char*, json>>{
           {"kind", "perl"}, {"name", "a b"}, {"name", 1}, {"warm", 6}, {"idleLimitMs", -1}, {"ipython", 1}}) {
    CAPTURE(key);
    json bad = good;
    bad[key] = value;
    const auto received = read(bad);
    REQUIRE_FALSE(received);
    CHECK(received.error().message == std::string("Malformed message: ") + key);
  }
}

TEST_CASE("wire: names of sessions are short and cannot be paths") {
  CHECK(wire::is_session_name("main"));
  CHECK(wire::is_session_name("2024-data.v1"));
  CHECK(wire::is_session_name(std::string(64, 'a')));
  for (const std::string& name : {std::string(), std::string(65, 'a'), std::string("a b"), std::string(".hidden"),
                                  std::string("../x"), std::string("a/b"), std::string("ü"), std::string("a\0b", 3)}) {
    CAPTURE(name);
    CHECK_FALSE(wire::is_session_name(name));
  }
}
