#include "agent/files/file_changer.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "agent/files/revision.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::ChangeAnswer;
using agent::Edit;
using agent::Encoding;
using agent::FileChanger;
using agent::FileSpace;
using agent::NewContent;
using agent::revision_of;
namespace fs = std::filesystem;

namespace {

constexpr const char* k_owner = "ann";

NewContent text(std::string_view bytes, std::optional<mode_t> mode = {}, std::optional<Encoding> encoding = {}) {
  return {bytes, true, encoding, mode};
}

NewContent binary(std::string_view bytes) {
  return {bytes, false, std::nullopt, std::nullopt};
}

/// Files, and one who changes them as `owner`.
class World {
 public:
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(m_work / name, std::ios::binary) << content;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(m_work / name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (m_work / name).string(); }
  [[nodiscard]] const fs::path& work() const { return m_work.path(); }
  [[nodiscard]] const fs::path& state() const { return m_state.path(); }

  void read(const std::string& name) {
    const auto file = m_space->find(at(name));
    REQUIRE(file);
    const auto read = read_content(*file, {});
    REQUIRE(read);
    m_changer->note_seen(owner, file->path, *read);
  }
  Result<ChangeAnswer> write(const std::string& name, const NewContent& content) {
    return m_changer->write(*m_space, {at(name), owner, expected}, content);
  }
  Result<ChangeAnswer> write(const std::string& name, const std::string& content) { return write(name, text(content)); }
  Result<ChangeAnswer> edit(const std::string& name, const std::vector<Edit>& edits) {
    return m_changer->edit(*m_space, {at(name), owner, expected}, edits);
  }
  Result<ChangeAnswer> undo(const std::string& name, const std::optional<std::string>& change = std::nullopt) {
    return m_changer->undo(*m_space, {at(name), owner, std::nullopt}, change);
  }
  Result<ChangeAnswer> write_in_pieces(const std::string& name, const std::vector<std::string>& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (auto staged = m_changer->stage(*m_space, at(name), pieces[i], i == 0); !staged) {
        return fail(staged.error());
      }
    }
    return m_changer->write_staged(*m_space, {at(name), owner, expected}, {});
  }
  FileChanger& changer() { return *m_changer; }
  const FileSpace& space() { return *m_space; }
  /// As the next server would.
  void start_anew() { m_changer.emplace(std::move(*FileChanger::open(m_state.fd()))); }
  /// Nothing is there but the files that should be.
  [[nodiscard]] bool is_tidy() const {
    return std::none_of(fs::recursive_directory_iterator(m_work.path()), fs::recursive_directory_iterator(),
                        [](const auto& entry) { return entry.path().filename().string().starts_with(".dockbridge-"); });
  }

  std::string owner = k_owner;
  std::optional<std::string> expected;

 private:
  test::TemporaryDirectory m_state;
  test::TemporaryDirectory m_work;
  Result<FileSpace> m_space = FileSpace::open("");
  std::optional<FileChanger> m_changer = std::move(*FileChanger::open(m_state.fd()));
};

template <typename Value>
std::string code_of(const Result<Value>& result) {
  return result ? "" : result.error().code;
}

bool says(const Error& error, const std::string& part) {
  return error.sentence().find(part) != std::string::npos;
}

bool notes(const Result<ChangeAnswer>& answer, const std::string& part) {
  return std::any_of(answer->notes.begin(), answer->notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

struct stat status_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

}  // namespace

TEST_CASE("a new file is made with its directories, exactly as given") {
  World world;
  for (const std::string& content :
       {std::string(), std::string("x"), std::string("no newline at the end"), std::string("any\0bytes\xFF\r\n", 13)}) {
    const std::string name = "a/b/" + std::to_string(content.size());
    const auto answer = world.write(name, binary(content));
    REQUIRE(answer);
    CHECK(world.content(name) == content);
    CHECK(answer->before.empty());
    CHECK(answer->revision == revision_of(content));
    CHECK(answer->size == content.size());
    CHECK(answer->path == world.at(name));
  }
  CHECK(world.is_tidy());
}

TEST_CASE("names with line ends, quotes, spaces, dashes and invalid UTF-8 are only names") {
  World world;
  for (const std::string& name :
       {std::string("a\nb"), std::string("\"'`$(x)"), std::string(" "), std::string("-rf"), std::string("\xFF\xFE"),
        std::string("\t\\n"), std::string(255, 'n'), std::string("x (deleted)")}) {
    REQUIRE(world.write(name, "one\n"));
    REQUIRE(world.edit(name, {{"one", "two"}}));
    CHECK(world.content(name) == "two\n");
    REQUIRE(world.undo(name));
    CHECK(world.content(name) == "one\n");
  }
}

TEST_CASE("a file that exists has to be read before it is written, by the same owner") {
  World world;
  world.put("file", "theirs");
  CHECK(code_of(world.write("file", "mine")) == "not_read");
  CHECK(code_of(world.edit("file", {{"theirs", "mine"}})) == "not_read");
  CHECK(world.content("file") == "theirs");
  world.read("file");
  world.owner = "bob";
  CHECK(code_of(world.write("file", "bob's")) == "not_read");
  world.owner = k_owner;
  CHECK(world.write("file", "mine"));
  CHECK(world.content("file") == "mine");
}

TEST_CASE("what was read counts for the next server too") {
  World world;
  world.put("file", "old");
  world.read("file");
  world.start_anew();
  CHECK(world.write("file", "new"));
}

TEST_CASE("a file the tools wrote counts as read; one that was removed and made again by others does not") {
  World world;
  REQUIRE(world.write("file", "one"));
  REQUIRE(world.write("file", "two"));
  REQUIRE(world.edit("file", {{"two", "three"}}));
  fs::remove(world.at("file"));
  world.put("file", "theirs");
  CHECK(code_of(world.write("file", "four")) == "file_changed");
}

TEST_CASE("a file that has changed since is not overwritten, and the difference is shown") {
  World world;
  world.put("file", "one\ntwo\nthree\n");
  world.read("file");
  world.put("file", "one\n2\nthree\n");
  const auto refused = world.write("file", "mine");
  REQUIRE(code_of(refused) == "file_changed");
  CHECK(says(refused.error(), "-two\n+2\n"));
  CHECK(says(refused.error(), revision_of("one\n2\nthree\n")));
  CHECK(world.content("file") == "one\n2\nthree\n");
  CHECK(world.is_tidy());
}

TEST_CASE("it is the content that counts, not the time of a change") {
  World world;
  world.put("file", "same");
  world.read("file");
  world.put("file", "different");
  world.put("file", "same");
  CHECK(world.write("file", "new"));

  // A change that leaves size and times as they were is a change.
  world.put("other", "aaaa");
  world.read("other");
  const struct stat before = status_of(world.at("other"));
  world.put("other", "bbbb");
  const std::array<timespec, 2> times = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, world.at("other").c_str(), times.data(), 0) == 0);
  CHECK(code_of(world.write("other", "new")) == "file_changed");
}

TEST_CASE("an expected revision stands for a read, and has to be right") {
  World world;
  world.put("file", "old");
  world.expected = revision_of("older");
  CHECK(code_of(world.write("file", "new")) == "file_changed");
  world.expected = "";
  CHECK(code_of(world.write("file", "new")) == "file_changed");
  world.expected = revision_of("old");
  CHECK(world.write("file", "new"));
  CHECK(code_of(world.write("file", "newer")) == "file_changed");
  CHECK(code_of(world.write("gone", "new")) == "file_changed");
  CHECK(!fs::exists(world.at("gone")));
}

TEST_CASE("an expected revision that is no revision is never opened") {
  World world;
  world.put("file", "old");
  const std::string pipe = world.at("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& expected :
       {pipe, std::string("../../x"), std::string("a\0b", 3), std::string(100'000, 'a')}) {
    world.expected = expected;
    CHECK(code_of(world.write("file", "new")) == "file_changed");
    CHECK(code_of(world.edit("file", {{"none", "new"}})) == "no_match");
  }
}

TEST_CASE("an edit that still matches is applied to a file that others have changed, and that is said") {
  World world;
  world.put("file", "one\ntwo\nthree\n");
  world.read("file");
  world.put("file", "one\ntwo\nTHREE\n");
  const auto edited = world.edit("file", {{"one", "1"}});
  REQUIRE(edited);
  CHECK(world.content("file") == "1\ntwo\nTHREE\n");
  REQUIRE(edited->since);
  CHECK(edited->since->text.find("-three\n+THREE\n") != std::string::npos);
  CHECK(edited->diff.text.find("-one\n+1\n") != std::string::npos);
  CHECK(edited->diff.text.find("THREE\n+") == std::string::npos);
  CHECK(!world.edit("file", {{"two", "2"}})->since);
}

TEST_CASE("an edit that does not match any more says what others have changed") {
  World world;
  world.put("file", "one\ntwo\n");
  world.read("file");
  world.put("file", "one\nzwei\n");
  const auto edited = world.edit("file", {{"two", "2"}});
  REQUIRE(code_of(edited) == "no_match");
  CHECK(says(edited.error(), "-two\n+zwei\n"));
  CHECK(world.content("file") == "one\nzwei\n");
}

TEST_CASE("in a file that others have changed nothing is replaced that the owner may not have seen") {
  World world;
  world.put("file", "a\nb\n");
  world.read("file");
  world.put("file", "a\nb\na\n");
  const auto edited = world.edit("file", {{"a", "c", true}});
  REQUIRE(code_of(edited) == "file_changed");
  CHECK(says(edited.error(), "+a\n"));
  CHECK(world.content("file") == "a\nb\na\n");
  CHECK(world.edit("file", {{"b", "c", true}}));
}

TEST_CASE("several edits are made all or none") {
  World world;
  REQUIRE(world.write("file", "one\ntwo\n"));
  const auto refused = world.edit("file", {{"one", "1"}, {"three", "3"}});
  CHECK(code_of(refused) == "no_match");
  CHECK(world.content("file") == "one\ntwo\n");
  const auto edited = world.edit("file", {{"one", "1"}, {"two", "2"}});
  REQUIRE(edited);
  CHECK(world.content("file") == "1\n2\n");
  CHECK(edited->replacements == std::vector<std::size_t>{1, 1});
  CHECK(code_of(world.edit("file", {{"", "x"}})) == "empty_old_text");
  CHECK(code_of(world.edit("file", {{"1", "1"}})) == "identical_texts");
  CHECK(code_of(world.edit("none", {{"1", "2"}})) == "no_such_file");
}

TEST_CASE("an edit keeps line ends, byte order mark and encoding to the byte") {
  World world;
  for (const auto& [before, edit, after] :
       {std::tuple(std::string("a\r\nb\r\n"), Edit{"a\nb", "c\nd"}, std::string("c\r\nd\r\n")),
        std::tuple(std::string("\xEF\xBB\xBF"
                               "a\n"),
                   Edit{"a", "b"},
                   std::string("\xEF\xBB\xBF"
                               "b\n")),
        std::tuple(std::string("\xFF\xFE"
                               "a\0\r\0\n\0",
                               8),
                   Edit{"a", "é"}, std::string("\xFF\xFE\xE9\0\r\0\n\0", 8)),
        std::tuple(std::string("\xFE\xFF\0a\0\n", 6), Edit{"a", "😀"}, std::string("\xFE\xFF\xD8\x3D\xDE\0\0\n", 8)),
        std::tuple(std::string("caf\xE9 a\x93\n"), Edit{"a\xC2\x93", "b"}, std::string("caf\xE9 b\n"))}) {
    world.put("file", before);
    world.read("file");
    REQUIRE(world.edit("file", {edit}));
    CHECK(world.content("file") == after);
    REQUIRE(world.undo("file"));
    CHECK(world.content("file") == before);
  }
}

TEST_CASE("text is written in the encoding that the file has, unless another is asked for") {
  World world;
  world.put("file", "caf\xE9\n");
  world.read("file");
  REQUIRE(world.write("file", "thé\n"));
  CHECK(world.content("file") == "th\xE9\n");
  CHECK(code_of(world.write("file", "日本\n")) == "not_encodable");
  CHECK(world.content("file") == "th\xE9\n");
  REQUIRE(world.write("file", text("日本\n", {}, Encoding::utf8)));
  CHECK(world.content("file") == "日本\n");
  REQUIRE(world.write("new", text("é", {}, Encoding::utf16_le)));
  CHECK(world.content("new") == "\xFF\xFE\xE9" + std::string(1, '\0'));
  REQUIRE(world.write("new", binary(std::string_view("\0x", 2))));
  CHECK(world.content("new") == std::string("\0x", 2));
}

TEST_CASE("a binary file can be written as a whole, not edited") {
  World world;
  world.put("file", std::string("\0\1\2", 3));
  world.read("file");
  CHECK(code_of(world.edit("file", {{"a", "b"}})) == "is_binary");
  CHECK(world.write("file", binary(std::string_view("\0\1", 2))));
}

TEST_CASE("a directory, a pipe, a socket or a device is not written, and not waited for") {
  World world;
  REQUIRE(::mkfifo(world.at("pipe").c_str(), 0600) == 0);
  CHECK(code_of(world.write("", "x")) == "is_a_directory");
  CHECK(code_of(world.write("pipe", "x")) == "not_a_file");
  CHECK(code_of(world.edit("pipe", {{"a", "b"}})) == "not_a_file");
  CHECK(code_of(world.undo("pipe")) == "not_a_file");
  CHECK(code_of(world.write_in_pieces("pipe", {"x"})) == "not_a_file");
  fs::create_symlink("/dev/null", world.at("null"));
  CHECK(code_of(world.write("null", "x")) == "not_a_file");
}

TEST_CASE("a symbolic link stays one, and what it leads to is written") {
  World world;
  fs::create_directory(world.at("dir"));
  world.put("dir/target", "old");
  fs::create_symlink("dir/target", world.at("link"));
  world.read("link");
  const auto answer = world.write("link", "new");
  REQUIRE(answer);
  CHECK(answer->path == world.at("dir/target"));
  CHECK(fs::is_symlink(world.at("link")));
  CHECK(world.content("dir/target") == "new");
  CHECK(world.write("dir/target", "newer"));  // read by the one name, written by the other
}

TEST_CASE("mode and extended attributes are kept") {
  World world;
  world.put("file", "old");
  const std::string path = world.at("file");
  REQUIRE(::chmod(path.c_str(), 04751) == 0);
  REQUIRE(::setxattr(path.c_str(), "user.note", "hello", 5, 0) == 0);
  world.read("file");
  const auto answer = world.write("file", "new");
  REQUIRE(answer);
  CHECK(answer->notes.empty());
  const struct stat after = status_of(path);
  CHECK((after.st_mode & 07777) == 04751);
  std::string value(10, '\0');
  CHECK(::getxattr(path.c_str(), "user.note", value.data(), value.size()) == 5);
  CHECK(value.substr(0, 5) == "hello");
}

TEST_CASE("a mode that is given is set, on a new file and on an old one, and an undo brings the earlier one back") {
  World world;
  REQUIRE(world.write("script", text("#!/bin/sh\n", 0750)));
  CHECK((status_of(world.at("script")).st_mode & 07777) == 0750);
  REQUIRE(world.write("script", text("x", 0600)));
  CHECK((status_of(world.at("script")).st_mode & 07777) == 0600);
  REQUIRE(world.write("script", "y"));
  CHECK((status_of(world.at("script")).st_mode & 07777) == 0600);
  REQUIRE(world.undo("script"));
  REQUIRE(world.undo("script"));
  REQUIRE(world.write("plain", "x"));
  CHECK((status_of(world.at("plain")).st_mode & 07777) == 0644);
}

TEST_CASE("a file with several names is written in place, and that is said") {
  World world;
  world.put("file", "the old content");
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.read("file");
  const auto answer = world.write("file", "new");
  REQUIRE(answer);
  CHECK(notes(answer, "in place"));
  CHECK(notes(answer, "2 names"));
  CHECK(world.content("other") == "new");
  CHECK(status_of(world.at("file")).st_ino == status_of(world.at("other")).st_ino);
  REQUIRE(world.undo("file"));
  CHECK(world.content("other") == "the old content");
}

TEST_CASE("a file with several names is not written in place when its old content cannot be kept") {
  World world;
  world.put("file", "old");
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.expected = revision_of("old");
  fs::remove_all(world.state() / "contents");
  const auto answer = world.write("file", "new");
  CHECK(!answer);
  CHECK(world.content("file") == "old");
}

TEST_CASE("a change is undone, and an undo too") {
  World world;
  REQUIRE(world.write("file", "one\n"));
  REQUIRE(world.write("file", "two\n"));
  const auto undone = world.undo("file");
  REQUIRE(undone);
  CHECK(world.content("file") == "one\n");
  CHECK(undone->diff.text.find("-two\n+one\n") != std::string::npos);
  CHECK(undone->revision == revision_of("one\n"));
  REQUIRE(world.undo("file"));
  CHECK(world.content("file") == "two\n");
  CHECK(world.write("file", "three\n"));
}

TEST_CASE("the making of a file is undone by removing it, and that too can be undone") {
  World world;
  const auto made = world.write("dir/file", "content");
  REQUIRE(made);
  const auto removed = world.undo("dir/file", made->change);
  REQUIRE(removed);
  CHECK(removed->revision.empty());
  CHECK(!fs::exists(world.at("dir/file")));
  REQUIRE(world.undo("dir/file"));
  CHECK(world.content("dir/file") == "content");
  CHECK(world.write("dir/file", "more"));
}

TEST_CASE("a change that others have built on is not undone, and the difference is shown") {
  World world;
  REQUIRE(world.write("file", "one\n"));
  const auto second = world.write("file", "two\n");
  REQUIRE(second);
  REQUIRE(world.write("file", "three\n"));
  CHECK(code_of(world.undo("file", second->change)) == "file_changed");
  world.put("file", "three\ntheirs\n");
  const auto refused = world.undo("file");
  REQUIRE(code_of(refused) == "file_changed");
  CHECK(says(refused.error(), "+theirs"));
  CHECK(world.content("file") == "three\ntheirs\n");
  fs::remove(world.at("file"));
  CHECK(code_of(world.undo("file")) == "file_changed");
  CHECK(code_of(world.undo("never")) == "no_such_change");
  CHECK(code_of(world.undo("file", "change_none")) == "no_such_change");
}

TEST_CASE("a change can be undone by the next server") {
  World world;
  world.put("file", "old");
  world.read("file");
  const auto changed = world.write("file", "new");
  REQUIRE(changed);
  world.start_anew();
  REQUIRE(world.undo("file", changed->change));
  CHECK(world.content("file") == "old");
}

TEST_CASE("a content that comes in pieces is seen as a whole or not at all") {
  World world;
  REQUIRE(world.changer().stage(world.space(), world.at("dir/file"), "one ", true));
  REQUIRE(world.changer().stage(world.space(), world.at("dir/file"), "two", false));
  CHECK(!fs::exists(world.at("dir/file")));
  world.changer().abandon_staged();
  CHECK(world.is_tidy());
  CHECK(code_of(world.changer().stage(world.space(), world.at("dir/file"), "x", false)) == "nothing_staged");
  const auto answer = world.write_in_pieces("dir/file", {"one ", "two"});
  REQUIRE(answer);
  CHECK(world.content("dir/file") == "one two");
  CHECK(answer->revision == revision_of("one two"));
  CHECK(answer->size == 7);
  CHECK(world.is_tidy());
  world.put("dir/file", "theirs");
  CHECK(code_of(world.write_in_pieces("dir/file", {"mine"})) == "file_changed");
  CHECK(world.content("dir/file") == "theirs");
  CHECK(world.is_tidy());
}

TEST_CASE("a large file is replaced and brought back without being held in memory") {
  World world;
  const std::string large(17 * 1024 * 1024, 'x');
  REQUIRE(world.write_in_pieces("file", {large, "end\n"}));
  const auto answer = world.write("file", "small");
  REQUIRE(answer);
  CHECK(answer->before == revision_of(large + "end\n"));
  REQUIRE(world.undo("file"));
  CHECK(world.content("file") == large + "end\n");
  CHECK(code_of(world.edit("file", {{"end", "END"}})) == "too_large");
}

TEST_CASE("a directory that another has locked is waited for, and then given up on") {
  World world;
  world.put("file", "old");
  world.read("file");
  const Fd directory(::open(world.work().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(directory.get(), LOCK_EX) == 0);
  CHECK(code_of(world.write("file", "new")) == "directory_locked");
  CHECK(world.content("file") == "old");
  ::flock(directory.get(), LOCK_UN);
  CHECK(world.write("file", "new"));
}

TEST_CASE("of many who change one file at the same time nobody overwrites the other unseen") {
  World world;
  world.put("file", "0");
  constexpr int k_writers = 4;
  constexpr int k_rounds = 25;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < k_writers; ++writer) {
    writers.emplace_back([&, writer] {
      const Fd state(::open(world.state().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      auto changer = std::move(*FileChanger::open(state.get()));
      const auto space = std::move(*FileSpace::open(""));
      for (int done = 0; done < k_rounds;) {
        // Counts up; who was too late reads again.
        const std::string seen = world.content("file");
        const std::string next = std::to_string(std::stoi(seen) + 1);
        const auto written =
            changer.write(space, {world.at("file"), std::to_string(writer), revision_of(seen)}, text(next));
        done += written ? 1 : 0;
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  CHECK(world.content("file") == std::to_string(k_writers * k_rounds));
  CHECK(world.is_tidy());
}

TEST_CASE("with a root, nothing outside it is changed or told of") {
  World world;
  fs::create_directory(world.at("root"));
  world.put("secret", "secret");
  fs::create_symlink("../secret", world.at("root/link"));
  const auto space = FileSpace::open(world.at("root"));
  REQUIRE(space);
  const auto write = [&](const std::string& path) {
    return world.changer().write(*space, {path, k_owner, revision_of("secret")}, text("x"));
  };
  CHECK(code_of(write(world.at("root/link"))) == "outside_root");
  CHECK(code_of(write(world.at("root/../secret"))) == "outside_root");
  CHECK(code_of(write(world.at("secret"))) == "outside_root");
  CHECK(code_of(write(world.at("new"))) == "outside_root");
  CHECK(code_of(world.changer().undo(*space, {world.at("secret"), k_owner, {}}, {})) == "outside_root");
  world.expected.reset();
  CHECK(world.changer().write(*space, {world.at("root/sub/file"), k_owner, {}}, text("x")));
  CHECK(world.content("root/sub/file") == "x");
  CHECK(world.content("secret") == "secret");
  CHECK(!fs::exists(world.at("new")));
}

TEST_CASE("a staged text is not stored as UTF-8 where the file, or whoever asks, wants something else") {
  World world;
  world.put("file", std::string("\xFF\xFEo\0l\0d\0", 8));
  const std::string revision = agent::revision_of(world.content("file"));
  REQUIRE(world.changer().stage(world.space(), world.at("file"), "new", true));
  const agent::ChangeRequest request{world.at("file"), "me", revision};
  CHECK(code_of(world.changer().write_staged(world.space(), request, {})) == "too_large");
  CHECK(world.content("file").size() == 8);
  REQUIRE(world.changer().stage(world.space(), world.at("file"), "new", true));
  agent::NewContent as_utf8;
  as_utf8.encoding = agent::Encoding::utf8;
  REQUIRE(world.changer().write_staged(world.space(), request, as_utf8));
  CHECK(world.content("file") == "new");
}
