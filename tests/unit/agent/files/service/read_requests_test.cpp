#include "agent/files/service/read_requests.hpp"

#include <doctest/doctest.h>

#include "support/png.hpp"
#include "support/repeated.hpp"
#include "unit/agent/files/change/changing_world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

struct Page {
  std::int64_t offset = 0;
  std::size_t limit = 2000;
  std::uint64_t column = 0;
  std::size_t max_bytes = 10'000;
};

wire::FileReadAnswer read(ChangingWorld& world, const Page& page = {}) {
  auto answer =
      agent::read_page(world.space(), world.changer(),
                       {world.at("file"), world.owner, page.offset, page.limit, page.column, 2000, page.max_bytes});
  REQUIRE(answer);
  return std::move(*answer);
}

}  // namespace

TEST_CASE("file.read: pages in order up to the end count as a whole read") {
  ChangingWorld world;
  world.put("file", "1\n2\n3\n4\n5\n");
  (void)read(world, {.limit = 2});
  CHECK(code_of(world.write("file", "new")) == "not_read");
  (void)read(world, {.offset = 3, .limit = 2});  // line 3 is missing
  CHECK(says(world.write("file", "new").error(), "(offset: 2)"));
  (void)read(world, {.offset = 1, .limit = 2});
  (void)read(world, {.limit = 1});  // less than before
  CHECK(says(world.write("file", "new").error(), "(offset: 3)"));
  (void)read(world, {.offset = -2});
  (void)read(world, {.limit = 1});
  CHECK(world.write("file", "new"));
}

TEST_CASE("file.read: pages of different contents, and parts of a line, do not add up") {
  ChangingWorld world;
  world.put("file", "1\n2\n3\n");
  (void)read(world, {.limit = 2});
  world.put("file", "one\n2\n3\n");
  CHECK(read(world, {.offset = 2}).previous_revision == revision_of("1\n2\n3\n"));
  CHECK(says(world.write("file", "new").error(), "(offset: 0)"));
  (void)read(world, {.column = 1});
  CHECK(says(world.write("file", "new").error(), "(offset: 0)"));
  (void)read(world);
  CHECK(world.write("file", "new"));
}

TEST_CASE("file.read: a page fits with its line numbers, and only its lines count as read") {
  ChangingWorld world;
  world.put("file", repeated("x\n", 100));
  const auto page = read(world, {.max_bytes = 200});
  CHECK(page.more);
  CHECK(page.lines == 41);  // 9 lines of 4 bytes and 32 of 5
  CHECK(says(world.write("file", "new").error(), "(offset: 41)"));
  CHECK(read(world, {.max_bytes = 1}).lines == 1);
}

TEST_CASE("file.read: a damaged image is described as binary") {
  ChangingWorld world;
  const std::string whole = plain_png(20, 20);
  world.put("file", whole);
  CHECK(read(world).kind == wire::FileKind::image);
  for (const std::size_t size : {std::size_t{8}, std::size_t{30}, whole.size() - 5}) {
    CAPTURE(size);
    world.put("file", whole.substr(0, size));
    const auto answer = read(world);
    CHECK(answer.kind == wire::FileKind::binary);
    CHECK(answer.type == "a damaged or incomplete image (image/png)");
  }
}
