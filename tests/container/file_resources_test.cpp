#include <doctest/doctest.h>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

json read_resource(Server& server, const std::string& uri) {
  return server.request("resources/read", {{"uri", uri}});
}

bool was_notified_of(Server& server, const std::string& uri) {
  for (const json& message : server.seen) {
    if (message.value("method", "") == "notifications/resources/updated" && field(message, "params", "uri") == uri) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("resources: a file is text or bytes; a missing one is an error") {
  Connected c;
  c.server.execute("printf 'one\\ntwo\\n' > '/app/a b.txt'; printf '\\000\\001\\002' > /app/bin");
  const json text = field(read_resource(c.server, "dockbridge://file/%2Fapp%2Fa%20b.txt"), "result", "contents", 0);
  CHECK(field(text, "text") == "one\ntwo\n");
  CHECK(field(text, "mimeType") == "text/plain");
  const json bytes = field(read_resource(c.server, "dockbridge://file/app/bin"), "result", "contents", 0);
  CHECK(field(bytes, "blob") == "AAEC");
  CHECK(read_resource(c.server, "dockbridge://file/%2Fapp%2Fmissing").contains("error"));
  CHECK(read_resource(c.server, "dockbridge://file/%2").contains("error"));
}

TEST_CASE("resources: a subscriber is notified of every change of a file") {
  Connected c;
  c.server.execute("echo one > /app/watched");
  const std::string uri = "dockbridge://file/%2Fapp%2Fwatched";
  REQUIRE(c.server.request("resources/subscribe", {{"uri", uri}}).contains("result"));
  for (const char* change : {"echo two >> /app/watched", "echo three > /app/w2; mv /app/w2 /app/watched",
                             "rm /app/watched", "echo four > /app/watched"}) {
    CAPTURE(change);
    c.server.seen.clear();
    c.server.execute(change);
    eventually("the change is reported", [&] {
      c.server.request("ping");
      return was_notified_of(c.server, uri);
    });
  }
}

TEST_CASE("completion: paths are completed from the container's files") {
  Connected c;
  c.server.execute("mkdir -p /app/source; touch /app/some /app/other");
  const json answer =
      c.server.request("completion/complete", {{"ref", {{"type", "ref/resource"}, {"uri", "dockbridge://file/{path}"}}},
                                               {"argument", {{"name", "path"}, {"value", "/app/so"}}}});
  CHECK(field(answer, "result", "completion", "values") == json::array({"/app/some", "/app/source/"}));
}
