#include "tools/search_start.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;

namespace {

using Globs = std::vector<std::string>;

std::pair<std::string, Globs> split(Globs globs) {
  std::string directory = tools::take_common_directory(globs);
  return {std::move(directory), std::move(globs)};
}

}  // namespace

TEST_CASE("search start: an absolute glob is split before its first wildcard") {
  CHECK(split({"/app/t/src/*.ts"}) == std::pair{std::string("/app/t/src"), Globs{"/*.ts"}});
  CHECK(split({"/app/{a,b}/*.ts"}) == std::pair{std::string("/app"), Globs{"/{a,b}/*.ts"}});
  CHECK(split({"/app/src*/x"}) == std::pair{std::string("/app"), Globs{"/src*/x"}});
  CHECK(split({"/app/**/x.ts"}) == std::pair{std::string("/app"), Globs{"/**/x.ts"}});
  CHECK(split({"/app/x.ts"}) == std::pair{std::string("/app"), Globs{"/x.ts"}});
  CHECK(split({"/*"}) == std::pair{std::string("/"), Globs{"/*"}});
  CHECK(split({"/app/a\\*/b"}) == std::pair{std::string("/app"), Globs{"/a\\*/b"}});
}

TEST_CASE("search start: several absolute globs share the deepest common directory") {
  CHECK(split({"/app/src/*.ts", "/app/lib/*.ts"}) == std::pair{std::string("/app"), Globs{"/src/*.ts", "/lib/*.ts"}});
  CHECK(split({"/app/src/*.ts", "/app/source/*.ts"}) ==
        std::pair{std::string("/app"), Globs{"/src/*.ts", "/source/*.ts"}});
  CHECK(split({"/app/src/deep/*", "/app/src/*"}) == std::pair{std::string("/app/src"), Globs{"/deep/*", "/*"}});
  CHECK(split({"/app/*", "/srv/*"}) == std::pair{std::string("/"), Globs{"/app/*", "/srv/*"}});
}

TEST_CASE("joined path: the root has its slash already") {
  CHECK(tools::joined_path("/", "x") == "/x");
  CHECK(tools::joined_path("/app", "x/y") == "/app/x/y");
}
