#include <doctest/doctest.h>

#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::sandbox;
using namespace dockbridge::test;

namespace {

json change(const std::string& path, std::size_t diff_bytes) {
  return {{"path", path},
          {"revision", std::string(32, 'a')},
          {"before", std::string(32, 'b')},
          {"change", "change_0123456789abcdef"},
          {"size", 4},
          {"encoding", "utf-8"},
          {"replacements", {1}},
          {"added", 1},
          {"removed", 1},
          {"diffBytes", diff_bytes},
          {"stale", false},
          {"notes", json::array()}};
}

/// The result of an edit of two files if the agent sends this answer.
Result<std::vector<ChangedFile>> edited(const std::string& list, const std::string& rest,
                                        std::int64_t list_bytes = -1) {
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    const json size = list_bytes < 0 ? json(list.size()) : json(list_bytes);
    agent.answer(request, {{"listBytes", size}}, list + rest);
  });
  EditSet set;
  set.owner = "o";
  set.files = {{"/a", {{"x", "y"}}}, {"/b", {{"x", "y"}}}};
  return world.sandbox.files().edit_all(set);
}

Result<ScaledImage> scaled(const json& head) {
  World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, head, "image"); });
  return world.sandbox.files().scaled_image("/a", "o", 100, {});
}

}  // namespace

TEST_CASE("files: the changes of several files have their diffs") {
  const json list = {{"changes", {change("/a", 3), change("/b", 5)}}};
  const auto files = edited(list.dump(), "oneother");
  REQUIRE(files);
  REQUIRE(files->size() == 2);
  CHECK((*files)[0].diff == "one");
  CHECK((*files)[1].diff == "other");
  CHECK((*files)[1].path == "/b");
}

TEST_CASE("files: a malformed answer to an edit of several files ends the connection") {
  const auto is_violation = [](const Result<std::vector<ChangedFile>>& result) {
    return !result && result.error().code == ErrorCode::protocol_violation;
  };
  const json good = {{"changes", {change("/a", 3)}}};
  CHECK(edited(good.dump(), "one"));
  CHECK(is_violation(edited(good.dump(), "on")));
  CHECK(is_violation(edited(good.dump(), "one", 100'000)));
  CHECK(is_violation(edited(good.dump(), "one", 10)));
  CHECK(is_violation(edited("[]", "")));
  CHECK(is_violation(edited("{}", "")));
  CHECK(is_violation(edited(R"({"changes": 1})", "")));
  CHECK(is_violation(edited(R"({"changes": [1]})", "")));
  const json many = {{"changes", {change("/a", 0), change("/b", 0), change("/c", 0)}}};
  CHECK(is_violation(edited(many.dump(), "")));
  json bad = good;
  bad["changes"][0]["revision"] = "no revision";
  CHECK(is_violation(edited(bad.dump(), "one")));
}

TEST_CASE("files: the facts of a scaled image are checked") {
  const json good = {{"type", "image/png"}, {"revision", std::string(32, 'a')}, {"width", 3}, {"height", 4}};
  const auto image = scaled(good);
  REQUIRE(image);
  CHECK(image->bytes == "image");
  CHECK(image->height == 4);
  for (const auto& [key, value] :
       {std::pair("type", json("text/html")), std::pair("type", json(1)), std::pair("revision", json("x")),
        std::pair("width", json(-1)), std::pair("height", json(1ULL << 40U)), std::pair("width", json("3"))}) {
    CAPTURE(key);
    json bad = good;
    bad[key] = value;
    const auto refused = scaled(bad);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::protocol_violation);
  }
}

TEST_CASE("files: a dead worker leaves the outcome of a set unknown") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.refuse(request, "worker_gone"); });
  EditSet set;
  set.files = {{"/a", {{"x", "y"}}}};
  const auto changed = world.sandbox.files().edit_all(set);
  REQUIRE_FALSE(changed);
  CHECK(changed.error().outcome_unknown);
  CHECK(changed.error().message.find("all files may have been changed, or none") != std::string::npos);
  set.preview = true;
  CHECK_FALSE(world.sandbox.files().edit_all(set).error().outcome_unknown);
}

TEST_CASE("files: a malformed answer drops the connection and names the field") {
  json bad = change("/a", 0);
  bad["replacements"] = {1, "x"};
  World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, bad); });
  REQUIRE(world.sandbox.hello());
  const auto number = world.sandbox.connection_number();
  const auto changed = world.sandbox.files().write({"/a", "o", {}}, {"abc"});
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == ErrorCode::protocol_violation);
  CHECK(changed.error().message.find("Malformed message: replacements[1]") != std::string::npos);
  CHECK(world.sandbox.connection_number() != number);
}
