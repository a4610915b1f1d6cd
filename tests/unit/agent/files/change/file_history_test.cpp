#include "agent/files/change/file_history.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::FileChange;
using agent::FileHistory;
using agent::SeenContent;

namespace {

const std::string k_one(32, '1');
const std::string k_two(32, '2');
const std::string k_three(32, '3');

std::string id(int number) {
  return fmt::format("change_{:016x}", number);
}

}  // namespace

TEST_CASE("history: the last seen revision is kept for its owner and later processes") {
  const test::TemporaryDirectory state;
  FileHistory(state.fd()).note_seen("ann", "/a", {k_one});
  FileHistory(state.fd()).note_seen("ann", "/a", {k_two});
  FileHistory(state.fd()).note_seen("bob", "/a", {k_three});
  const FileHistory history(state.fd());
  CHECK(history.last_seen("ann", "/a")->revision == k_two);
  CHECK(history.last_seen("bob", "/a")->revision == k_three);
  CHECK(!history.last_seen("eve", "/a"));
  CHECK(!history.last_seen("ann", "/"));
  CHECK(!history.last_seen("ann", "/a/b"));
  CHECK(!history.last_seen("", "/a"));
}

TEST_CASE("history: the number of lines that were seen is kept, and a forged one is ignored") {
  const test::TemporaryDirectory state;
  const FileHistory history(state.fd());
  history.note_seen("ann", "/a", {k_one, 20});
  CHECK(history.last_seen("ann", "/a")->revision == k_one);
  CHECK(history.last_seen("ann", "/a")->lines == 20);
  history.note_seen("ann", "/a", {k_one});
  CHECK(history.last_seen("ann", "/a")->lines == SeenContent::k_all_lines);
  for (const char* lines : {"", "-1", "1x", "1\t2", "99999999999999999999999"}) {
    CAPTURE(lines);
    std::ofstream(state / "files_seen", std::ios::app) << "\nann\t/a\t" << k_one << "\t" << lines << "\n";
    CHECK(!history.last_seen("ann", "/a"));
  }
}

TEST_CASE("history: names with separators, line ends and backslashes are distinct") {
  const test::TemporaryDirectory state;
  const FileHistory history(state.fd());
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"a", "/x\ty"}, {"a\t/x", "/y"}, {"a", "/x\\ty"},           {"a", "/x\ny"}, {"a", "/x\\ny"}, {"a", "/x\\\ty"},
      {"a", "/\xFF"}, {"a\n", "/x"},   {"a", "/x\na\t/other\t1"}, {"", "/x"}};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    history.note_seen(keys[i].first, keys[i].second, {fmt::format("{:032}", i)});
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    CAPTURE(i);
    CHECK(history.last_seen(keys[i].first, keys[i].second)->revision == fmt::format("{:032}", i));
  }
  CHECK(!history.last_seen("a", "/other"));
}

TEST_CASE("history: finds the newest change of a file, or the one with an id") {
  const test::TemporaryDirectory state;
  const FileHistory history(state.fd());
  REQUIRE(history.note_change({id(1), "/a", "", k_one, 0}));
  REQUIRE(history.note_change({id(2), "/a", k_one, k_two, 0640}));
  REQUIRE(history.note_change({id(3), "/b", k_one, "", 04755}));
  CHECK(history.find_change("/a", std::nullopt)->id == id(2));
  CHECK(history.find_change("/a", std::nullopt)->mode == 0640);
  CHECK(history.find_change("/a", id(1))->before.empty());
  CHECK(history.find_change("/a", id(1))->after == k_one);
  CHECK(history.find_change("/b", std::nullopt)->after.empty());
  CHECK(history.find_change("/b", std::nullopt)->mode == 04755);
  CHECK(!history.find_change("/a", id(3)));
  CHECK(!history.find_change("/a", "change_"));
  CHECK(!history.find_change("/a", ""));
  CHECK(!history.find_change("/a", id(2) + "\t" + k_one));
  CHECK(!history.find_change("/c", std::nullopt));
}

TEST_CASE("history: a change is found by 8 of its digits") {
  const test::TemporaryDirectory state;
  const FileHistory history(state.fd());
  REQUIRE(history.note_change({"change_0123456789abcdef", "/a", "", k_one, 0}));
  REQUIRE(history.note_change({"change_fedcba9876543210", "/a", k_one, k_two, 0}));
  for (const char* id : {"01234567", "0123456789", "change_01234567", "0123456789abcdef", "change_0123456789abcdef"}) {
    CAPTURE(id);
    const auto found = history.find_change("/a", id);
    REQUIRE(found);
    CHECK(found->id == "change_0123456789abcdef");
    CHECK(found->after == k_one);
  }
  for (const char* id : {"0123456", "change_0123456", "12345678", "0123456789abcdef0", "01234567\t", "ABCDEF01"}) {
    CAPTURE(id);
    CHECK(!history.find_change("/a", id));
  }
}

TEST_CASE("history: logs are bounded and keep the newest lines") {
  const test::TemporaryDirectory state;
  const FileHistory history(state.fd());
  const std::string path = "/" + std::string(4000, 'x');
  for (int i = 0; i < 1000; ++i) {
    history.note_seen("ann", path + std::to_string(i), {k_one});
    REQUIRE(history.last_seen("ann", path + std::to_string(i))->revision == k_one);
    REQUIRE(history.note_change({id(i), path, k_one, k_two, 0}));
    REQUIRE(history.find_change(path, std::nullopt)->id == id(i));
  }
  for (const char* log : {"files_seen", "files_changed"}) {
    CHECK(std::filesystem::file_size(state / log) <= FileHistory::k_max_log_bytes + 10'000);
  }
  CHECK(!history.last_seen("ann", path + "0"));
}

TEST_CASE("history: finds an old line at any position, and no partial line") {
  for (std::size_t since = 4000; since < 4200; ++since) {
    CAPTURE(since);
    const test::TemporaryDirectory state;
    std::ofstream(state / "files_seen") << "ann\t/a\t" << k_one << "\nxann\t/a\t" << k_two << "\n"
                                        << std::string(since, '\n');
    CHECK(FileHistory(state.fd()).last_seen("ann", "/a")->revision == k_one);
    CHECK(FileHistory(state.fd()).last_seen("xann", "/a")->revision == k_two);
  }
}

TEST_CASE("history: a cut or damaged line does not hide the next one") {
  const test::TemporaryDirectory state;
  const FileHistory history(state.fd());
  for (const char* log : {"files_seen", "files_changed"}) {
    std::ofstream(state / log, std::ios::binary) << std::string("\0garbage\t\n/a\tchange_0\n/a", 24);
  }
  history.note_seen("ann", "/a", {k_one});
  REQUIRE(history.note_change({id(1), "/a", k_one, k_two, 0}));
  CHECK(history.last_seen("ann", "/a")->revision == k_one);
  CHECK(history.find_change("/a", std::nullopt)->id == id(1));
}

TEST_CASE("history: a log over the limit is replaced") {
  const test::TemporaryDirectory state;
  const FileHistory history(state.fd());
  std::ofstream(state / "files_seen") << std::string(3 * FileHistory::k_max_log_bytes, '\n');
  history.note_seen("ann", "/a", {k_one});
  history.note_seen("ann", "/a", {k_two});
  CHECK(history.last_seen("ann", "/a")->revision == k_two);
}

TEST_CASE("history: change ids are unique") {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    ids.insert(FileHistory::new_change_id());
  }
  CHECK(ids.size() == 1000);
}
