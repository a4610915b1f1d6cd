#include "agent/files/text/text_page.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/files/revision.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::Encoding;
using agent::FileContent;
using agent::FileSpace;
using agent::LineEnds;
using agent::page_of;
using agent::PageRequest;
using agent::read_content;
using agent::revision_of;
using agent::TextPage;

namespace {

constexpr std::size_t k_mib = 1024 * 1024;

struct World {
  test::TemporaryDirectory work;

  void put(const std::string& content) const { std::ofstream(work / "file", std::ios::binary) << content; }
  [[nodiscard]] Result<FileContent> read(const PageRequest& request = {}, const std::string& path = "") const {
    const auto space = FileSpace::open("");
    const auto file = space->find(path.empty() ? (work / "file").string() : path);
    REQUIRE(file);
    return read_content(*file, request);
  }
};

TextPage page(const std::string& text, const PageRequest& request = {}) {
  return page_of(text, request);
}

/// Numbered lines of at least this many bytes.
std::string many_lines(std::size_t bytes, const std::string& end = "\n") {
  std::string text;
  text.reserve(bytes + 100);
  for (std::uint64_t i = 1; text.size() < bytes; ++i) {
    text += "line " + std::to_string(i) + std::string(90, '.') + end;
  }
  return text;
}

std::string first_word_pair(const std::string& text) {
  return text.substr(0, text.find('.'));
}

}  // namespace

TEST_CASE("text page: reports the first line number and whether more follow") {
  const std::string text = "one\ntwo\nthree\n";
  CHECK(page(text).text == text);
  CHECK(page(text).total_lines == 3);
  CHECK(!page(text).more);
  const TextPage middle = page(text, {.offset = 1, .limit = 1});
  CHECK(middle.text == "two\n");
  CHECK(middle.first_line == 2);
  CHECK(middle.lines == 1);
  CHECK(middle.more);
  CHECK(page(text, {.offset = 2}).text == "three\n");
  CHECK(!page(text, {.offset = 2, .limit = 1}).more);
  CHECK(page(text, {.offset = 3}).lines == 0);
  CHECK(page(text, {.offset = 1'000'000'000'000}).lines == 0);
}

TEST_CASE("text page: a negative offset counts from the end") {
  const std::string text = "one\ntwo\nthree";
  CHECK(page(text, {.offset = -1}).text == "three\n");
  CHECK(page(text, {.offset = -2}).text == "two\nthree\n");
  CHECK(page(text, {.offset = -2}).first_line == 2);
  CHECK(page(text, {.offset = -2, .limit = 1}).text == "two\n");
  CHECK(page(text, {.offset = -100}).first_line == 1);
  CHECK(page(text, {.offset = -1'000'000'000'000}).lines == 3);
}

TEST_CASE("text page: a last line without an end is a line") {
  CHECK(page("a\nb").total_lines == 2);
  CHECK(!page("a\nb").final_newline);
  CHECK(page("a\nb\n").total_lines == 2);
  CHECK(page("a\nb\n").final_newline);
  CHECK(page("").total_lines == 0);
  CHECK(page("").lines == 0);
  CHECK(page("\n").total_lines == 1);
  CHECK(page("\n\n").text == "\n\n");
}

TEST_CASE("text page: hides the CR of CR LF only") {
  CHECK(page("a\r\nb\r\n").text == "a\nb\n");
  CHECK(page("a\r\nb\r\n").ends == LineEnds::crlf);
  CHECK(page("a\r\nb\n").ends == LineEnds::mixed);
  CHECK(page("a\rb\n").text == "a\rb\n");
}

TEST_CASE("text page: a long line is cut between characters, and they are counted") {
  const PageRequest request{.most_line_characters = 10};
  CHECK(page(std::string(10, 'x'), request).text == std::string(10, 'x') + "\n");
  CHECK(page(std::string(10, 'x') + "\r\n", request).cut_lines == 0);
  std::string text;
  for (int i = 0; i < 25; ++i) {
    text += "€";
  }
  const TextPage cut = page("short\n" + text + "\r\n", request);
  CHECK(cut.cut_lines == 1);
  CHECK(cut.text == "short\n" + text.substr(0, 30) + "... [15 more characters: offset: 1, column: 10]\n");
}

TEST_CASE("text page: a column continues a long line up to the byte limit") {
  std::string text;
  for (int i = 0; i < 25; ++i) {
    text += "€";
  }
  const std::string file = "short\n" + text + "\r\nlast\n";
  const PageRequest request{.offset = 1, .limit = 1, .column = 10, .most_line_characters = 10, .most_bytes = 100};
  CHECK(page(file, request).text == text.substr(30) + "\n");
  PageRequest narrow = request;
  narrow.most_bytes = 31;
  const TextPage cut = page(file, narrow);
  CHECK(cut.text == text.substr(30, 30) + "... [5 more characters: offset: 1, column: 20]\n");
  CHECK(cut.cut_lines == 1);
  narrow.column = 20;
  CHECK(page(file, narrow).text == text.substr(60) + "\n");
  // For every column and byte limit, the pieces add up to the line.
  for (const std::size_t bytes : {1U, 2U, 3U, 7U, 100U}) {
    narrow.most_bytes = bytes;
    std::string line;
    for (narrow.column = 1; narrow.column < 25;) {
      const std::string piece = page(file, narrow).text;
      const std::string shown = piece.substr(0, std::min(piece.find("..."), piece.find('\n')));
      REQUIRE(!shown.empty());
      line += shown;
      narrow.column += shown.size() / 3;
    }
    CHECK(line == text.substr(3));
  }
  narrow.column = 25;
  CHECK(page(file, narrow).text == "\n");
  narrow.column = 1000;
  CHECK(page(file, narrow).text == "\n");
  // The lines after it are shown from their start.
  PageRequest more = request;
  more.limit = 5;
  CHECK(page(file, more).text == text.substr(30) + "\nlast\n");
}

TEST_CASE("text page: has at most max bytes, but at least one line") {
  const std::string text = std::string(100, 'a') + "\n" + std::string(100, 'b') + "\n";
  const TextPage first = page(text, {.most_bytes = 150});
  CHECK(first.lines == 1);
  CHECK(first.more);
  CHECK(page(text, {.most_bytes = 1}).lines == 1);
  CHECK(page(text, {.offset = 1, .most_bytes = 1}).text == std::string(100, 'b') + "\n");
}

TEST_CASE("text page: any encoding is shown as UTF-8, the revision is of the bytes") {
  const World world;
  for (const auto& [bytes, encoding, text] :
       {std::tuple(std::string("h\xC3\xA9\n"), Encoding::utf8, std::string("hé\n")),
        std::tuple(std::string("\xEF\xBB\xBFh\xC3\xA9\n"), Encoding::utf8_bom, std::string("hé\n")),
        std::tuple(std::string("\xFF\xFEh\0\xE9\0\n\0", 8), Encoding::utf16_le, std::string("hé\n")),
        std::tuple(std::string("\xFE\xFF\0h\0\xE9\0\n", 8), Encoding::utf16_be, std::string("hé\n")),
        std::tuple(std::string("h\xE9\n"), Encoding::latin1, std::string("hé\n"))}) {
    world.put(bytes);
    const auto content = world.read();
    REQUIRE(content);
    CAPTURE(name_of(encoding));
    REQUIRE(content->page);
    CHECK(content->page->encoding == encoding);
    CHECK(content->page->text == text);
    CHECK(content->revision == revision_of(bytes));
    CHECK(content->whole == bytes);
    CHECK(content->size == bytes.size());
  }
}

TEST_CASE("text page: an empty file is text, one with NUL bytes is not") {
  const World world;
  world.put("");
  CHECK(world.read()->page);
  CHECK(world.read()->revision == revision_of(""));
  world.put(
      std::string("\x7F"
                  "ELF\0\0\0",
                  7));
  CHECK(!world.read()->page);
  CHECK(
      world.read()->start.starts_with("\x7F"
                                      "ELF"));
}

TEST_CASE("text page: a large file reads like a small one") {
  const World world;
  const std::string text = many_lines(17 * k_mib);
  world.put(text);
  const PageRequest request{.offset = 100'000, .limit = 3};
  const auto content = world.read(request);
  REQUIRE(content);
  CHECK(!content->whole);
  CHECK(content->revision == revision_of(text));
  REQUIRE(content->page);
  CHECK(content->page->text == page(text, request).text);
  CHECK(content->page->first_line == 100'001);
  CHECK(content->page->total_lines == page(text).total_lines);
  CHECK(content->page->more);
  const auto end = world.read({.offset = -2});
  CHECK(end->page->text == page(text, {.offset = -2}).text);
  CHECK(end->page->first_line == page(text, {.offset = -2}).first_line);
  CHECK(!end->page->more);
  CHECK(end->page->final_newline);
  CHECK(world.read({.offset = 10'000'000})->page->lines == 0);
}

TEST_CASE("text page: a large file reports its line ends, BOM and last line") {
  const World world;
  const std::string text = "\xEF\xBB\xBF" + many_lines(17 * k_mib, "\r\n") + "the last";
  world.put(text);
  const auto content = world.read({.limit = 2});
  REQUIRE(content->page);
  CHECK(content->page->encoding == Encoding::utf8_bom);
  CHECK(content->page->ends == LineEnds::crlf);
  CHECK(first_word_pair(content->page->text) == "line 1");
  CHECK(!content->page->final_newline);
  CHECK(world.read({.offset = -1})->page->text == "the last\n");
}

TEST_CASE("text page: long lines of a large file are cut like those of a small one") {
  const World world;
  std::string characters;
  for (int i = 0; i < 50'000; ++i) {
    characters += "€";
  }
  const std::string filling = many_lines(17 * k_mib);
  const std::vector<std::pair<std::string, const char*>> cases = {
      {std::string(200'000, 'x'), "\r\n"}, {characters, "\n"}, {"x" + characters, "\r\n"}, {"xx" + characters, "\n"}};
  for (const auto& [line, end] : cases) {
    const std::string start = line + end + "next" + end;
    world.put(start + filling);
    const auto content = world.read({.limit = 2});
    REQUIRE(content->page);
    const TextPage small = page(start, {.limit = 2});
    CHECK((content->page->text == small.text));
    for (const std::uint64_t column : {2000U, 49'999U, 50'000U}) {
      const PageRequest later{.limit = 2, .column = column, .most_bytes = 10'000};
      const auto continued = world.read(later);
      REQUIRE(continued->page);
      CHECK((continued->page->text == page(start, later).text));
    }
  }
}

TEST_CASE("text page: a large file in Latin-1 has one character per byte") {
  const World world;
  const std::string start = std::string(30'000, '\xA0') + "\n\xE9t\xE9\n";
  world.put(start + many_lines(17 * k_mib));
  const auto content = world.read({.limit = 2});
  REQUIRE(content->page);
  CHECK(content->page->encoding == Encoding::latin1);
  CHECK(content->page->text.find("... [28000 more characters: offset: 0, column: 2000]\n") != std::string::npos);
  const auto rest = world.read({.limit = 1, .column = 29'990});
  CHECK(rest->page->text.size() == 21);
  CHECK(content->page->text.ends_with("été\n"));
}

TEST_CASE("text page: a line across two read blocks is one line") {
  const World world;
  // The file is read in blocks of 256 KiB. A two-byte character or a CR LF is on each block boundary.
  std::string text;
  while (text.size() < 17 * k_mib) {
    text += std::string(256 * 1024 - 1 - text.size() % (256 * 1024), 'x') + "é\n";
    text += std::string(256 * 1024 - 1 - text.size() % (256 * 1024), 'y') + "\r\n";
  }
  world.put(text);
  for (const std::int64_t offset : {0, 1, 2, 3, 60}) {
    const PageRequest request{.offset = offset, .limit = 5, .most_line_characters = 2000};
    const auto content = world.read(request);
    REQUIRE(content->page);
    CHECK(content->page->text == page(text, request).text);
  }
}

TEST_CASE("text page: start and end of a huge file are read without the rest") {
  const World world;
  const std::string path = (world.work / "file").string();
  {
    const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const std::string start = many_lines(5 * k_mib);
    REQUIRE(::pwrite(file.get(), start.data(), start.size(), 0) == static_cast<ssize_t>(start.size()));
    const std::string end = "\nnearly the last\nthe last\n";
    REQUIRE(::pwrite(file.get(), end.data(), end.size(), 20LL << 30) == static_cast<ssize_t>(end.size()));
  }
  const auto start = world.read({.offset = 10, .limit = 1});
  REQUIRE(start);
  REQUIRE(start->page);
  CHECK(first_word_pair(start->page->text) == "line 11");
  CHECK(start->revision.empty());
  CHECK(!start->page->total_lines);
  CHECK(start->page->more);
  const auto end = world.read({.offset = -2});
  REQUIRE(end);
  CHECK(end->page->text == "nearly the last\nthe last\n");
  CHECK(end->page->first_line == -2);
  CHECK(!end->page->more);
}

TEST_CASE("text page: pseudo files are read to their end without blocking") {
  const World world;
  const auto status = world.read({}, "/proc/self/status");
  REQUIRE(status);
  CHECK(status->page->text.find("VmRSS") != std::string::npos);
  CHECK(status->size > 100);
  for (const char* path : {"/proc/self/mem", "/proc/self/environ", "/proc/self/maps", "/proc/self/pagemap",
                           "/proc/kcore", "/proc/self/clear_refs", "/sys/kernel/mm/transparent_hugepage/enabled"}) {
    if (std::filesystem::exists(path)) {
      CAPTURE(path);
      const auto content = world.read({}, path);
      CHECK((content || !content.error().message.empty()));
    }
  }
}

TEST_CASE("text page: a file that changed after its lookup is read as it is") {
  const World world;
  const auto space = FileSpace::open("");
  const auto looked_up = [&] {
    auto file = space->find((world.work / "file").string());
    REQUIRE(file);
    return std::move(*file);
  };
  world.put("some text\n");
  auto file = looked_up();
  world.put("");
  CHECK(read_content(file, {})->size == 0);
  world.put("some text\nand more\n");
  const auto grown = read_content(file, {});
  CHECK(grown->page->lines == 2);
  CHECK(grown->revision == revision_of("some text\nand more\n"));
  const std::string large = many_lines(17 * k_mib);
  world.put(large);
  const auto grown_large = read_content(file, {.limit = 1});
  REQUIRE(grown_large);
  CHECK(first_word_pair(grown_large->page->text) == "line 1");
  file = looked_up();
  world.put("short\n");
  const auto shrunk = read_content(file, {});
  REQUIRE(shrunk);
  REQUIRE(shrunk->page);
  CHECK(shrunk->page->text == "short\n");
  CHECK(shrunk->revision == revision_of("short\n"));
  file = looked_up();
  std::filesystem::remove(world.work / "file");
  CHECK(read_content(file, {})->page->text == "short\n");
}

TEST_CASE("text page: the lines of a large file match the reported revision") {
  const World world;
  const std::string rest(16 * k_mib, 'x');
  const std::string before = std::string(10, 'a') + "\n" + rest;
  const std::string after = std::string(10, 'b') + "\n" + rest;
  world.put(before);
  const std::string revision_before = revision_of(before);
  const std::string revision_after = revision_of(after);
  std::atomic<bool> over = false;
  std::thread writer([&] {
    const Fd file(::open((world.work / "file").c_str(), O_WRONLY | O_CLOEXEC));
    for (bool is_after = true; !over; is_after = !is_after) {
      (void)!::pwrite(file.get(), (is_after ? after : before).data(), 10, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  // Without the comparison of revisions, each page would be wrong with a probability of one half.
  constexpr int k_wanted_pages = 10;
  int pages = 0;
  bool is_right = true;
  for (int round = 0; pages < k_wanted_pages && round < 4000; ++round) {
    const auto content = world.read({.offset = 0, .limit = 1});
    if (!content) {
      CHECK(content.error().code == ErrorCode::file_changed);
      continue;
    }
    ++pages;
    is_right = is_right && content->revision == (content->page->text.front() == 'a' ? revision_before : revision_after);
  }
  over = true;
  writer.join();
  CHECK(is_right);
  CHECK(pages == k_wanted_pages);
}

TEST_CASE("text page: a large file can be read while it grows") {
  const World world;
  const std::string content = "first\n" + std::string(17 * k_mib, 'x') + "\n";
  world.put(content);
  std::atomic<bool> over = false;
  std::thread writer([&] {
    const Fd file(::open((world.work / "file").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    for (int i = 0; i < 100'000 && !over; ++i) {
      (void)!::write(file.get(), "more\n", 5);
    }
  });
  for (int round = 0; round < 10; ++round) {
    const auto page = world.read({.offset = -1, .limit = 1});
    CHECK(page);
  }
  over = true;
  writer.join();
}
