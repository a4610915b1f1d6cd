#include <doctest/doctest.h>

#include <string>

#include "support/connected.hpp"

using namespace dockbridge;
using test::Connected;
using test::field;
using test::fields_of;
using test::json;
using test::text_of;

namespace {

struct Results : Connected {
  Results() : Connected({"--init"}, "dockbridge-test:slim", {"--structured", "on", "--python-ipython", "never"}) {}
  json run(const std::string& code) {
    return server.call("python", {{"code", code}, {"session", "main"}}, seconds(60));
  }
};

/// Writes a PNG image of W x H random pixels without any package.
const std::string k_png =
    "import os, struct, zlib\n"
    "def png(width, height):\n"
    "    def chunk(kind, data):\n"
    "        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n"
    "    rows = b''.join(b'\\0' + os.urandom(width * 3) for _ in range(height))\n"
    "    return (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0))\n"
    "            + chunk(b'IDAT', zlib.compress(rows, 1)) + chunk(b'IEND', b''))\n"
    "class Image:\n"
    "    def __init__(self, width, height): self.data = png(width, height)\n"
    "    def _repr_png_(self): return self.data\n";

}  // namespace

TEST_CASE("python results: an image is shown, and its original is in the workdir") {
  Results python;
  (void)python.run(k_png);
  const json result = python.run("Image(30, 20)");
  CHECK(text_of(result) == "[image: figures/main-2-1.png, 30x20]");
  CHECK(field(result, "content", 1, "type") == "image");
  CHECK(field(result, "content", 1, "mimeType") == "image/png");
  CHECK(field(fields_of(result), "value", "image/png", "path") == "/app/figures/main-2-1.png");
}

TEST_CASE("python results: a large image is stored whole and shown small") {
  Results python;
  (void)python.run(k_png);
  const json result = python.run("image = Image(1800, 1000)\nimage");
  CHECK(text_of(result).find("[image: figures/main-2-1.png, 1800x1000, shown as ") == 0);
  const std::string shown = field(result, "content", 1, "data");
  CHECK(shown.size() <= 1024UL * 1024 * 4 / 3 + 4);
  CHECK(text_of(
            python.run("open('/app/figures/main-2-1.png', 'rb').read() == image.data, len(image.data) > 5_000_000")) ==
        "(True, True)");
}

TEST_CASE("python results: at most eight images are shown") {
  Results python;
  (void)python.run(k_png);
  const json result = python.run("for i in range(10): display(Image(2, 2))");
  CHECK(field(result, "content").size() == 9);
  CHECK(text_of(result).find("[image: figures/main-2-9.png, 2x2, not shown]") != std::string::npos);
}

TEST_CASE("python results: HTML and SVG are links that can be read") {
  Results python;
  const json result = python.run(
      "class Table:\n"
      "    def __repr__(self): return 'a  b\\n1  2'\n"
      "    def _repr_html_(self): return '<table>é</table>'\n"
      "class Drawing:\n"
      "    def __repr__(self): return 'drawing'\n"
      "    def _repr_svg_(self): return '<svg>' + 'x' * 200_000 + '</svg>'\n"
      "display(Drawing())\n"
      "Table()");
  CHECK(text_of(result).find("drawing\na  b\n1  2") == 0);
  CHECK(field(result, "content", 1, "type") == "resource_link");
  CHECK(field(result, "content", 1, "mimeType") == "image/svg+xml");
  CHECK(field(result, "content", 1, "annotations", "audience", 0) == "user");
  CHECK(field(result, "content", 2, "mimeType") == "text/html");
  const auto read = [&](int index) {
    const json answer = python.server.request("resources/read", {{"uri", field(result, "content", index, "uri")}});
    return field(answer, "result", "contents", 0, "text").get<std::string>();
  };
  CHECK(read(1).size() == 200'011);
  CHECK(read(2) == "<table>é</table>");
  (void)python.run("1");
  CHECK(read(2) == "<table>é</table>");
  CHECK(python.server.request("resources/read", {{"uri", "dockbridge://python/main/1/9"}}).contains("error"));
}

TEST_CASE("python results: displays come before the value, markdown instead of a bare object") {
  Results python;
  const json result = python.run("display('one', 2)\n3");
  CHECK(text_of(result).find("'one'\n2\n3") == 0);
  CHECK(field(fields_of(result), "displays").size() == 2);
  const json markdown = python.run("class M:\n    def _repr_markdown_(self): return '# title'\nM()");
  CHECK(text_of(markdown) == "# title");
}
