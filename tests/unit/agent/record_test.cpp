#include "agent/record.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "util/fd.hpp"
#include "util/file.hpp"

using namespace dockbridge;
using agent::Meta;
using agent::Status;
using wire::Cause;
using wire::EndKind;

namespace {

/// A process's folder, gone at the end of the test.
class ProcessFolder {
 public:
  ProcessFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "record_test.XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    m_path = path;
    m_fd.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~ProcessFolder() { std::filesystem::remove_all(m_path); }
  ProcessFolder(const ProcessFolder&) = delete;
  ProcessFolder& operator=(const ProcessFolder&) = delete;

  [[nodiscard]] int fd() const { return m_fd.get(); }
  void put(const char* name, std::string_view content) const { REQUIRE(replace_file_at(fd(), name, content)); }
  [[nodiscard]] bool has(const char* name) const { return std::filesystem::exists(m_path / name); }

 private:
  std::filesystem::path m_path;
  Fd m_fd;
};

std::string status_error(const ProcessFolder& folder) {
  const auto status = agent::read_status(folder.fd());
  REQUIRE_FALSE(status);
  return status.error().code;
}

std::string meta_error(const ProcessFolder& folder) {
  const auto meta = agent::read_meta(folder.fd());
  REQUIRE_FALSE(meta);
  return meta.error().code;
}

}  // namespace

TEST_CASE("meta reads back as it was written") {
  const ProcessFolder folder;
  REQUIRE(agent::write_meta(folder.fd(), {"make \"ä\"\n", "/app", "local", "because", 4711, 1'700'000'000'000}));
  const auto meta = agent::read_meta(folder.fd());
  REQUIRE(meta);
  CHECK(meta->command == "make \"ä\"\n");
  CHECK(meta->cwd == "/app");
  CHECK(meta->owner == "local");
  CHECK(meta->rationale == "because");
  CHECK(meta->pid == 4711);
  CHECK(meta->started_at_ms == 1'700'000'000'000);
}

TEST_CASE("a command that is not UTF-8 is recorded with the bad bytes replaced") {
  const ProcessFolder folder;
  REQUIRE(agent::write_meta(folder.fd(), {"echo \xff", "/", "", "", 1, 1}));
  const auto meta = agent::read_meta(folder.fd());
  REQUIRE(meta);
  CHECK(meta->command == "echo \xEF\xBF\xBD");
}

TEST_CASE("status reads back as it was written, whatever the end") {
  const ProcessFolder folder;
  for (const EndKind end : {EndKind::none, EndKind::exit, EndKind::signal, EndKind::unknown}) {
    for (const Cause cause : {Cause::none, Cause::timeout, Cause::cancelled, Cause::terminated}) {
      for (const bool closed : {false, true}) {
        REQUIRE(agent::write_status(folder.fd(), {end, 137, cause, 1'700'000'000'000, closed}));
        const auto status = agent::read_status(folder.fd());
        REQUIRE(status);
        REQUIRE(*status);
        CHECK((*status)->end == end);
        CHECK((*status)->end_code == 137);
        CHECK((*status)->cause == cause);
        CHECK((*status)->ended_at_ms == 1'700'000'000'000);
        CHECK((*status)->closed == closed);
      }
    }
  }
}

TEST_CASE("a process without a status has not ended") {
  const ProcessFolder folder;
  const auto status = agent::read_status(folder.fd());
  REQUIRE(status);
  CHECK_FALSE(*status);
}

TEST_CASE("a process without a meta is an error") {
  const ProcessFolder folder;
  CHECK(meta_error(folder) == "io_error");
}

TEST_CASE("a record is replaced in one step and leaves nothing beside it") {
  const ProcessFolder folder;
  REQUIRE(agent::write_status(folder.fd(), {EndKind::exit, 1, Cause::none, 1, false}));
  REQUIRE(agent::write_status(folder.fd(), {EndKind::exit, 2, Cause::none, 2, true}));
  const auto status = agent::read_status(folder.fd());
  REQUIRE(status);
  REQUIRE(*status);
  CHECK((*status)->end_code == 2);
  CHECK_FALSE(folder.has("status.new"));
}

TEST_CASE("a record of a later version with fields nobody knows yet is read") {
  const ProcessFolder folder;
  folder.put("meta", R"({"v":2,"command":"make","tty":{"cols":80}})");
  folder.put("status", R"({"v":2,"end":1,"endCode":3,"cpuMs":17})");
  const auto meta = agent::read_meta(folder.fd());
  REQUIRE(meta);
  CHECK(meta->command == "make");
  CHECK(meta->pid == 0);
  const auto status = agent::read_status(folder.fd());
  REQUIRE(status);
  REQUIRE(*status);
  CHECK((*status)->end == EndKind::exit);
  CHECK((*status)->end_code == 3);
  CHECK_FALSE((*status)->closed);
}

TEST_CASE("a damaged record is an error and not an ordinary end") {
  const ProcessFolder folder;
  for (const std::string content : {"", "null", "[]", "{", "{}", R"({"end":1})", R"({"v":0,"end":1})", R"({"v":"1"})",
                              R"({"v":null})", R"({"v":[1]})", R"({"v":1,"endCode":"0"})", R"({"v":1,"end":4})",
                              R"({"v":1,"end":-1})", R"({"v":1,"cause":4})", R"({"v":1,"closed":1})",
                              R"({"v":1,"a":[[[[1]]]]})"}) {
    CAPTURE(content);
    folder.put("status", content);
    CHECK(status_error(folder) == "record_damaged");
  }
  for (const std::string content : {"", "{}", R"({"v":"1"})", R"({"v":1,"command":7})", R"({"v":1,"pid":"7"})"}) {
    CAPTURE(content);
    folder.put("meta", content);
    CHECK(meta_error(folder) == "record_damaged");
  }
}

TEST_CASE("a record beyond its limit is refused before it is parsed") {
  const ProcessFolder folder;
  folder.put("meta", R"({"v":1})" + std::string(agent::k_max_record_bytes, ' '));
  CHECK(meta_error(folder) == "too_large");
}

TEST_CASE("a text is cut to a prefix of at most so many bytes, on the border of a character") {
  CHECK(agent::utf8_prefix("", 3) == "");
  CHECK(agent::utf8_prefix("abc", 3) == "abc");
  CHECK(agent::utf8_prefix("abcd", 3) == "abc");
  CHECK(agent::utf8_prefix("abc", 0) == "");
  const std::string text = "aä€😀";  // 1, 2, 3 and 4 bytes
  for (const auto& [max, length] : {std::pair{1, 1}, {2, 1}, {3, 3}, {4, 3}, {5, 3}, {6, 6}, {9, 6}, {10, 10}}) {
    CAPTURE(max);
    CHECK(agent::utf8_prefix(text, static_cast<std::size_t>(max)) == text.substr(0, static_cast<std::size_t>(length)));
  }
}
