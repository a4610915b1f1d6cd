#include "agent/record.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "util/fd.hpp"
#include "util/file.hpp"

using namespace dockbridge;
using agent::find_record;
using agent::Kept;
using agent::Meta;
using agent::Record;
using agent::Status;
using wire::Cause;
using wire::EndKind;

namespace {

const std::string k_recorded_process = "proc_1_a";
const Meta k_meta{"make \"ä\"\n", "/app", "local", "because", {1'700'000'000'000, 5000, "b007"}};
const std::string k_first_line = R"({"v":1,"id":"proc_1_a","command":"make","cwd":"/"})"
                                 "\n";

/// A journal on disk, removed at the end of the test.
class Journal {
 public:
  Journal() {
    m_path = (std::filesystem::temp_directory_path() / "record_test.XXXXXX").string();
    m_fd.reset(::mkostemp(m_path.data(), O_APPEND | O_CLOEXEC));
    REQUIRE(m_fd);
  }
  ~Journal() { std::filesystem::remove(m_path); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] int fd() const { return m_fd.get(); }
  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] std::string text() const { return read_file_at(AT_FDCWD, m_path, 1 << 20).value(); }
  [[nodiscard]] Record record(const std::string& process = k_recorded_process) const {
    const auto record = find_record(text(), process);
    REQUIRE(record);
    return *record;
  }

 private:
  std::string m_path;
  Fd m_fd;
};

/// Another line of the process, as JSON fields without braces.
std::string line(const std::string& fields) {
  return R"({"id":"proc_1_a",)" + fields + "}\n";
}

std::map<std::string, Result<Record>> all_records(std::string_view journal) {
  std::map<std::string, Result<Record>> all;
  agent::visit_records(journal, [&](const std::string& process, const auto& record) { all.emplace(process, record); });
  return all;
}

std::string error_of(std::string_view journal) {
  const auto record = find_record(journal, k_recorded_process);
  REQUIRE_FALSE(record);
  for (const auto& [process, same] : all_records(journal)) {
    CHECK((process != k_recorded_process || !same));
  }
  return std::string(name_of(record.error().code));
}

}  // namespace

TEST_CASE("record: later lines extend it, and it reads back as written") {
  const Journal journal;
  REQUIRE(append(journal.fd(), k_recorded_process, k_meta));
  Record record = journal.record();
  CHECK(record.meta.command == "make \"ä\"\n");
  CHECK(record.meta.cwd == "/app");
  CHECK(record.meta.owner == "local");
  CHECK(record.meta.rationale == "because");
  CHECK(record.meta.started.unix_ms == 1'700'000'000'000);
  CHECK(record.meta.started.uptime_ms == 5000);
  CHECK(record.meta.started.boot == "b007");
  CHECK_FALSE(record.kept);
  CHECK_FALSE(record.status);

  REQUIRE(append(journal.fd(), k_recorded_process, Kept{4711, "keeper_7_1"}));
  record = journal.record();
  CHECK(record.meta.command == "make \"ä\"\n");
  REQUIRE(record.kept);
  CHECK(record.kept->pid == 4711);
  CHECK(record.kept->keeper == "keeper_7_1");
  CHECK_FALSE(record.status);
}

TEST_CASE("record: processes that share a journal are separate") {
  const Journal journal;
  REQUIRE(append(journal.fd(), "proc_1_a", Meta{"first", "/", "", "", {}}));
  REQUIRE(append(journal.fd(), "proc_1_ab", Meta{R"("id":"proc_1_a")", "/", "", "", {}}));
  REQUIRE(append(journal.fd(), "proc_1_ab", Kept{2, "keeper_2_2"}));
  REQUIRE(append(journal.fd(), "proc_1_a", Status{EndKind::exit, 7, Cause::none, {}, true}));
  CHECK(journal.record("proc_1_a").meta.command == "first");
  CHECK_FALSE(journal.record("proc_1_a").kept);
  CHECK(journal.record("proc_1_a").status->end_code == 7);
  CHECK(journal.record("proc_1_ab").meta.command == R"("id":"proc_1_a")");
  CHECK(journal.record("proc_1_ab").kept->pid == 2);
  CHECK_FALSE(journal.record("proc_1_ab").status);
  const auto all = all_records(journal.text());
  REQUIRE(all.size() == 2);
  CHECK(all.at("proc_1_a")->status->end_code == 7);
  CHECK(all.at("proc_1_ab")->kept->keeper == "keeper_2_2");
}

TEST_CASE("record: invalid UTF-8 in a command is replaced") {
  const Journal journal;
  REQUIRE(append(journal.fd(), k_recorded_process, Meta{"echo \xff", "/", "", "", {}}));
  CHECK(journal.record().meta.command == "echo \xEF\xBF\xBD");
}

TEST_CASE("record: every kind of status reads back, and the last one counts") {
  const Journal journal;
  REQUIRE(append(journal.fd(), k_recorded_process, k_meta));
  for (const EndKind end : {EndKind::none, EndKind::exit, EndKind::signal, EndKind::unknown}) {
    for (const Cause cause : {Cause::none, Cause::timeout, Cause::cancelled, Cause::terminated}) {
      for (const bool closed : {false, true}) {
        REQUIRE(append(journal.fd(), k_recorded_process, Status{end, 137, cause, {1'700'000'000'000, 7000}, closed}));
        const auto status = journal.record().status;
        REQUIRE(status);
        CHECK(status->end == end);
        CHECK(status->end_code == 137);
        CHECK(status->cause == cause);
        CHECK(status->ended.unix_ms == 1'700'000'000'000);
        CHECK(status->ended.uptime_ms == 7000);
        CHECK(status->ended.boot == "b007");
        CHECK(status->closed == closed);
      }
    }
  }
}

TEST_CASE("record: inputs under idempotency keys are recorded, if there are any") {
  const Journal journal;
  Meta meta = k_meta;
  REQUIRE(append(journal.fd(), k_recorded_process, meta));
  REQUIRE(append(journal.fd(), k_recorded_process, Status()));
  CHECK(journal.text().find("call") == std::string::npos);
  CHECK(journal.text().find("taken") == std::string::npos);
  CHECK(journal.record().meta.call == "");
  CHECK(journal.record().status->taken.empty());

  meta.call = "0123";
  REQUIRE(append(journal.fd(), k_recorded_process, meta));
  REQUIRE(append(journal.fd(), k_recorded_process, Kept{1, "keeper_1_1", 4}));
  Status status;
  status.taken = {{"key", "call", 1, 2, 3}, {"key2", "call2", 4, 5, 6}};
  REQUIRE(append(journal.fd(), k_recorded_process, status));
  CHECK(journal.record().meta.call == "0123");
  CHECK(journal.record().kept->control == 4);
  const auto taken = journal.record().status->taken;
  REQUIRE(taken.size() == 2);
  CHECK(taken[1].key == "key2");
  CHECK(taken[1].call == "call2");
  CHECK(taken[1].units == 4);
  CHECK(taken[1].seen_out == 5);
  CHECK(taken[1].seen_err == 6);
}

TEST_CASE("record: an incomplete last line is ignored") {
  const auto record = find_record(k_first_line + R"({"id":"proc_1_a","pid":7,"keeper":"keeper_1_)", k_recorded_process);
  REQUIRE(record);
  CHECK(record->meta.command == "make");
  CHECK_FALSE(record->kept);
}

TEST_CASE("record: a line cut by a full disk does not affect other lines") {
  const Journal journal;
  REQUIRE(append(journal.fd(), k_recorded_process, k_meta));
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{std::filesystem::file_size(journal.path()) + 30, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  const auto appended = append(journal.fd(), k_recorded_process, Kept{4711, "keeper_7_1"});
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK_FALSE(appended);
  CHECK_FALSE(journal.record().kept);
  REQUIRE(append(journal.fd(), k_recorded_process, Kept{4712, "keeper_8_1"}));
  CHECK(journal.record().meta.cwd == "/app");
  REQUIRE(journal.record().kept);
  CHECK(journal.record().kept->pid == 4712);
}

TEST_CASE("record: an unknown process is an error") {
  CHECK(error_of("") == "record_damaged");
  CHECK(error_of(R"({"v":1,"id":"proc_1_b"})"
                 "\n") == "record_damaged");
}

TEST_CASE("record: unknown fields of a later version are ignored") {
  const auto record = find_record(R"({"v":2,"id":"proc_1_a","command":"make","tty":{"cols":80}})"
                                  "\n" +
                                      line(R"("pid":3,"cgroup":"x")") + line(R"("end":1,"endCode":3,"cpuMs":17)"),
                                  k_recorded_process);
  REQUIRE(record);
  CHECK(record->meta.command == "make");
  REQUIRE(record->kept);
  CHECK(record->kept->pid == 3);
  CHECK(record->kept->keeper.empty());
  REQUIRE(record->status);
  CHECK(record->status->end == EndKind::exit);
  CHECK(record->status->end_code == 3);
  CHECK_FALSE(record->status->closed);
}

TEST_CASE("record: a record of the first release is read") {
  const std::string journal =
      "\n"
      R"({"command":"make","cwd":"/app","id":"proc_1_a","owner":"local","rationale":"r","startedAtMs":1700000000000,"v":1})"
      "\n\n"
      R"({"id":"proc_1_a","keeper":"keeper_7_1700000000001","pid":12})"
      "\n\n"
      R"({"cause":1,"closed":true,"end":2,"endCode":15,"endedAtMs":1700000005000,"id":"proc_1_a"})"
      "\n";
  const auto record = find_record(journal, "proc_1_a");
  REQUIRE(record);
  CHECK(record->meta.command == "make");
  CHECK(record->meta.started.unix_ms == 1'700'000'000'000);
  CHECK(record->meta.started.boot == "");
  CHECK(record->kept->keeper == "keeper_7_1700000000001");
  CHECK(record->kept->control == 1);
  REQUIRE(record->status);
  CHECK(record->status->end == EndKind::signal);
  CHECK(record->status->end_code == 15);
  CHECK(record->status->cause == Cause::timeout);
  CHECK(record->status->ended.unix_ms == 1'700'000'005'000);
  CHECK(record->status->closed);
  CHECK(record->status->used.cpu_ms == 0);
}

TEST_CASE("record: a damaged record is an error, not an end") {
  for (const std::string first :
       {R"("end":1)", R"("v":0,"end":1)", R"("v":"1")", R"("v":null)", R"("v":[1])", R"("v":1,"command":7)"}) {
    CAPTURE(first);
    CHECK(error_of(line(first)) == "record_damaged");
  }
  for (const std::string later : {R"("pid":"7")", R"("pid":7,"keeper":1)", R"("end":1,"endCode":"0")", R"("end":4)",
                                  R"("end":-1)", R"("end":1,"closed":1)", R"("end":1,"taken":[["k"]])"}) {
    CAPTURE(later);
    CHECK(error_of(k_first_line + line(later)) == "record_damaged");
  }
}

TEST_CASE("record: an unknown cause of a later version reads as none") {
  for (const std::string cause : {"7", "-1", "1000"}) {
    const auto record = find_record(k_first_line + line(R"("end":1,"cause":)" + cause), k_recorded_process);
    REQUIRE(record);
    CHECK(record->status->cause == wire::Cause::none);
  }
}

TEST_CASE("record: a line that is not a JSON object or too deep is ignored") {
  for (const std::string other : {"x", "null", "[]", R"({"id":"proc_1_a","end":1)", R"("id":"proc_1_a")",
                                  R"({"id":7,"end":1})", R"({"id":"proc_1_a","end":1,"a":[[[[1]]]]})"}) {
    CAPTURE(other);
    const auto record = find_record(k_first_line + other + "\n", k_recorded_process);
    REQUIRE(record);
    CHECK_FALSE(record->status);
  }
}

TEST_CASE("utf8_prefix: cuts at a character boundary") {
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

TEST_CASE("record: the label of a code session is optional") {
  const Journal journal;
  REQUIRE(append(journal.fd(), k_recorded_process, k_meta));
  CHECK(journal.text().find("session") == std::string::npos);
  CHECK_FALSE(journal.record().meta.session);
  Meta labelled = k_meta;
  labelled.session = {wire::CodeKind::shell, "build", true};
  REQUIRE(append(journal.fd(), k_recorded_process, labelled));
  const auto label = journal.record().meta.session;
  REQUIRE(label);
  CHECK(label->kind == wire::CodeKind::shell);
  CHECK(label->name == "build");
  CHECK(label->is_warm);
  // A kind of a later version, and a name that no host has given.
  for (const std::string field : {R"("session":{"kind":"ruby","name":"a"})",
                                  R"("session":{"kind":"python","name":"/"})", R"("session":7)", R"("session":{})"}) {
    CAPTURE(field);
    const auto record = find_record(k_first_line + line(field), k_recorded_process);
    REQUIRE(record);
    CHECK_FALSE(record->meta.session);
  }
}

TEST_CASE("record: the number of a process is optional") {
  const Journal journal;
  Meta numbered = k_meta;
  numbered.number = 12;
  REQUIRE(append(journal.fd(), k_recorded_process, numbered));
  REQUIRE(append(journal.fd(), "proc_1_b", k_meta));
  CHECK(journal.record().meta.number == 12);
  CHECK(journal.record("proc_1_b").meta.number == 0);
  CHECK(error_of(k_first_line + line(R"("number":-1)")) == "record_damaged");
  CHECK(error_of(k_first_line + line(R"("number":1000000000)")) == "record_damaged");
  CHECK(error_of(k_first_line + line(R"("number":"1")")) == "record_damaged");
}
