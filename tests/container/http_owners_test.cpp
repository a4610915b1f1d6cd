// Effects of one owner, or of a client without a token, on another owner over HTTP.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/full.hpp"
#include "support/memory.hpp"
#include "support/served.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

bool runs(const Container& container) {
  return run_ok({"docker", "inspect", "-f", "{{.State.Running}}", container.name()}) == "true";
}

}  // namespace

TEST_CASE("http: readyz starts the container only with a token") {
  const Served served;
  run_ok({"docker", "stop", "-t", "0", served.container.name()});
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = HttpConnection(served.port()).request("GET", "/readyz", {});
    CHECK(answer.status == 503);
    CHECK(field(answer.json(), "status") == "not ready");
    CHECK(HttpConnection(served.port()).request("GET", "/healthz", {}).status == 200);
    CHECK(HttpConnection(served.port()).request("GET", "/metrics", {}).status == 200);
    CHECK(served.get("/readyz", "0123456789abcdef-wrong").status == 503);
  }
  CHECK_FALSE(runs(served.container));
  const HttpAnswer ready = served.get("/readyz", k_alice);
  CHECK(ready.status == 200);
  CHECK(field(ready.json(), "container") == served.container.name());
  CHECK(runs(served.container));
  CHECK(HttpConnection(served.port()).request("GET", "/readyz", {}).status == 200);
}

TEST_CASE("http: readyz without a token does not restart a stopped container") {
  const Served served;
  CHECK(served.get("/readyz", k_alice).status == 200);
  run_ok({"docker", "stop", "-t", "0", served.container.name()});
  for (int i = 0; i < 20; ++i) {
    (void)served.get("/healthz");
    (void)served.get("/metrics");
    (void)served.get("/readyz");
  }
  CHECK(HttpConnection(served.port()).request("GET", "/readyz", {}).status == 503);
  CHECK_FALSE(runs(served.container));
}

TEST_CASE("http: readyz reports a running container without connecting to it") {
  const Served served;
  const HttpAnswer answer = HttpConnection(served.port()).request("GET", "/readyz", {});
  CHECK(answer.status == 200);
  CHECK(served.container.pids_of(k_session).empty());
}

TEST_CASE("idempotency: 1,001 keys of one owner do not displace another owner's key") {
  const Served served;
  (void)served.call(k_bob, "file_write", {{"filePath", "notes"}, {"content", "start\n"}});
  const json edit = {{"filePath", "notes"}, {"oldString", "start\n"}, {"newString", "start\nline\n"}};
  CHECK(field(served.call(k_bob, "file_edit", edit, with_key("edit 1")), "isError") == false);
  for (int i = 0; i < 1001; ++i) {
    (void)served.call(k_alice, "file_ls", {{"path", "/app"}}, with_key(fmt::format("k{}", i)));
  }
  CHECK(field(served.call(k_bob, "file_edit", edit, with_key("edit 1")), "isError") == false);
  CHECK(served.container.sh("cat /app/notes") == "start\nline");
}

TEST_CASE("idempotency: 40 keyed reads of 3 MB use under 64 MiB and keep their keys") {
  const Served served;
  CHECK(served.container.sh("{ printf 'GIF89a\\1\\0\\1\\0'; head -c 3000000 /dev/urandom; } > /app/image.gif") == "");
  const auto read = [&](int i) {
    return served.call(k_alice, "file_read", {{"filePath", "image.gif"}}, with_key(fmt::format("read {}", i)));
  };
  CHECK(field(read(0), "isError") == false);
  const std::size_t before = memory_of(served.server.pid(), "VmRSS");
  for (int i = 1; i < 40; ++i) {
    REQUIRE(field(read(i), "isError") == false);
  }
  const std::size_t after = memory_of(served.server.pid(), "VmRSS");
  MESSAGE("resident before: ", before / 1024 / 1024, " MiB, after: ", after / 1024 / 1024, " MiB");
  CHECK((!k_memory_is_meaningful || after < before + 64UL * 1024 * 1024));
  CHECK(field(error_of(read(1)), "code") == "already_done");
  CHECK(field(read(39), "isError") == false);
}
