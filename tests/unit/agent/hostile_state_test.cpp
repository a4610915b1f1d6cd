// The state directory after an attack by a container process: files are forged, or replaced by FIFOs and links.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agent/control/packets.hpp"
#include "agent/files/change/content_store.hpp"
#include "agent/files/change/file_history.hpp"
#include "agent/files/change/write_journal.hpp"
#include "agent/files/revision.hpp"
#include "agent/record.hpp"
#include "agent/session/output_grep.hpp"
#include "agent/session/pruner.hpp"
#include "agent/session/state_directory.hpp"
#include "agent/spool.hpp"
#include "support/temporary_directory.hpp"
#include "util/file.hpp"
#include "wire/frame.hpp"

using namespace dockbridge;
using namespace dockbridge::agent;
using test::TemporaryDirectory;

namespace {

const std::string k_hostile_process = "proc_1_a";
constexpr std::uint64_t k_max = ~std::uint64_t{0};

/// The numbers of a spool's header, in the order of the file.
struct Forged {
  const char* what;
  std::uint64_t head_cap;
  std::uint64_t tail_cap;
  std::uint64_t total;
  std::uint64_t head_end;
  std::uint64_t tail_start;
  std::int64_t changed_at = 0;
};

void forge_spool(const TemporaryDirectory& directory, const std::string& name, const Forged& forged,
                 std::uint64_t size) {
  std::string page(4096, '\0');
  std::memcpy(page.data(), "DBSPOOL1", 8);
  const std::array<std::uint64_t, 6> fields = {forged.head_cap,   forged.tail_cap,
                                               forged.total,      forged.head_end,
                                               forged.tail_start, static_cast<std::uint64_t>(forged.changed_at)};
  std::memcpy(page.data() + 8, fields.data(), sizeof fields);
  REQUIRE(replace_file_at(directory.fd(), name, page));
  std::filesystem::resize_file(directory / name, size);
}

template <typename T>
std::string code_of(const Result<T>& result) {
  return result ? "success" : std::string(name_of(result.error().code));
}

void put_fifo(const TemporaryDirectory& directory, const std::string& name) {
  std::filesystem::remove(directory / name);
  REQUIRE(::mkfifo((directory / name).c_str(), 0600) == 0);
}

StateDirectory open_state(const TemporaryDirectory& directory) {
  auto state = StateDirectory::open(directory.path().string());
  REQUIRE(state);
  return std::move(*state);
}

Result<Record> record_with(const std::string& fields) {
  return find_record("{\"v\":1,\"id\":\"proc_1_a\"," + fields + "}\n", k_hostile_process);
}

ControlPacket packet_of(const StatePacket& state) {
  const auto* bytes = reinterpret_cast<const char*>(&state);
  return {state.header, std::string(bytes + sizeof state.header, sizeof state - sizeof state.header)};
}

}  // namespace

TEST_CASE("spool: every operation refuses a forged header") {
  const std::vector<Forged> table = {
      {"a total that wraps", 16, 16, k_max, 16, k_max - 16},
      {"a total beyond any stream", 16, 16, wire::k_max_stream_bytes + 1, 16, wire::k_max_stream_bytes},
      {"no head", 0, 16, 4, 4, 4},
      {"no ring", 16, 0, 4, 4, 4},
      {"a head of terabytes", std::uint64_t{1} << 42, 16, 4, 4, 4},
      {"a ring of terabytes", 16, std::uint64_t{1} << 42, 4, 4, 4},
      {"a head end beyond the head", 16, 16, 100, 17, 90},
      {"more held than there is room for", 16, 16, 1000, 16, 900},
      {"a time before the start of the machine", 16, 16, 4, 4, 4, -1},
      {"a time beyond any clock", 16, 16, 4, 4, 4, wire::k_max_time_ms + 1},
  };
  for (const Forged& forged : table) {
    CAPTURE(forged.what);
    const TemporaryDirectory directory;
    forge_spool(directory, "out", forged, 1 << 20);
    const auto spool = SpoolReader::open(directory.fd(), "out");
    REQUIRE(spool);
    CHECK(code_of(spool->state()) == "spool_damaged");
    CHECK(code_of(spool->changed_at()) == "spool_damaged");
    CHECK(code_of(spool->read(0, 1 << 20)) == "spool_damaged");
  }
}

TEST_CASE("output grep: a forged spool of 4 TB is refused at once") {
  const TemporaryDirectory directory;
  constexpr std::uint64_t k_size = std::uint64_t{4} << 40;
  auto search = OutputGrep::make({"x", false, 0, 10});
  REQUIRE(search);
  SUBCASE("forged caps") {
    forge_spool(directory, out_name(k_hostile_process), {"", k_size / 2, k_size / 2, k_size, k_size / 2, k_size / 2},
                k_size);
  }
  SUBCASE("forged total") {
    forge_spool(directory, out_name(k_hostile_process), {"", 16, 16, k_size, 16, 16}, k_size);
  }
  CHECK(code_of(search->advance(directory.fd(), k_hostile_process)) == "spool_damaged");
}

TEST_CASE("output grep: the work is bounded by the capacity of a spool") {
  const TemporaryDirectory directory;
  constexpr std::uint64_t k_cap = std::uint64_t{32} << 20;
  forge_spool(directory, out_name(k_hostile_process), {"", k_cap, k_cap, 2 * k_cap, k_cap, k_cap}, 4096 + 2 * k_cap);
  auto search = OutputGrep::make({"x", false, 0, 10});
  REQUIRE(search);
  std::uint64_t turns = 0;
  for (Result<bool> done = false; done && !*done; ++turns) {
    done = search->advance(directory.fd(), k_hostile_process);
    REQUIRE(done);
  }
  CHECK(turns <= 2 * k_cap / (1 << 20) + 2);
  CHECK(search->out().offset() == 2 * k_cap);
}

TEST_CASE("output grep: a search ends even if the stream grows faster") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), out_name(k_hostile_process), {});
  const std::string much = std::string(2 << 20, 'x') + "\n";
  writer.append(much);
  auto search = OutputGrep::make({"x", false, 0, 10});
  REQUIRE(search);
  int turns = 0;
  for (Result<bool> done = false; done && !*done && turns < 100; ++turns) {
    done = search->advance(directory.fd(), k_hostile_process);
    REQUIRE(done);
    writer.append(much);
  }
  CHECK(turns < 5);
  CHECK(search->out().matches() == 1);
}

TEST_CASE("state files: a FIFO in place of any file does not block") {
  const TemporaryDirectory directory;
  const std::string revision = revision_of("content");
  SUBCASE("a spool") {
    put_fifo(directory, "out");
    CHECK_FALSE(SpoolReader::open(directory.fd(), "out"));
  }
  SUBCASE("the journal of a process, the expired ids and the lock") {
    const StateDirectory state = open_state(directory);
    put_fifo(directory, k_hostile_process);
    CHECK_FALSE(state.read(k_hostile_process));
    put_fifo(directory, "expired");
    CHECK(code_of(state.read("proc_1_b")) == "no_such_process");
    put_fifo(directory, "lock");
    Pruner(state, {}).prune(now());
    CHECK(std::filesystem::exists(directory / k_hostile_process));
  }
  SUBCASE("the log of revisions that owners have read") {
    const FileHistory history(directory.fd());
    put_fifo(directory, "files_seen");
    CHECK_FALSE(history.last_seen("ann", "/a"));
    history.note_seen("ann", "/a", {revision});
    CHECK(history.last_seen("ann", "/a")->revision == revision);
  }
  SUBCASE("the log of changes") {
    const FileHistory history(directory.fd());
    put_fifo(directory, "files_changed");
    CHECK_FALSE(history.find_change("/a", std::nullopt));
    const FileChange change{FileHistory::new_change_id(), "/a", "", revision, 0};
    CHECK(history.note_change(change));
    CHECK(history.find_change("/a", std::nullopt)->id == change.id);
  }
  SUBCASE("packs and contents") {
    for (const char* pack : {"recent.contents", "older.contents"}) {
      put_fifo(directory, pack);
    }
    auto store = ContentStore::open(directory.fd());
    REQUIRE(store);
    put_fifo(directory, "contents/" + revision);
    put_fifo(directory, fmt::format("contents/{}.{}.new", revision, ::gettid()));
    CHECK_FALSE(store->get(revision, 100));
    REQUIRE(store->put(revision, "content"));
    CHECK(store->get(revision, 100).value_or("") == "content");
  }
  SUBCASE("a journal of writes") {
    put_fifo(directory, "writing_1_1_1");
    CHECK_FALSE(WriteJournal::has_leftovers(directory.fd()));
  }
  SUBCASE("the temporary name of a replaced file") {
    put_fifo(directory, "file.new");
    REQUIRE(replace_file_at(directory.fd(), "file", "content"));
    CHECK(read_regular_at(directory.fd(), "file", 100).value_or("") == "content");
  }
}

TEST_CASE("state files: a link in place of a file is not followed") {
  const TemporaryDirectory directory;
  const TemporaryDirectory elsewhere;
  std::ofstream(elsewhere / "target") << "secret";
  for (const char* name : {"files_seen", "out", "lock", "expired.new"}) {
    std::filesystem::create_symlink(elsewhere / "target", directory / name);
  }
  FileHistory(directory.fd()).note_seen("ann", "/a", {revision_of("content")});
  CHECK_FALSE(SpoolReader::open(directory.fd(), "out"));
  REQUIRE(replace_file_at(directory.fd(), "expired", "new"));
  const StateDirectory state = open_state(directory);
  Pruner(state, {}).prune(now());
  CHECK(read_regular_at(elsewhere.fd(), "target", 100).value_or("") == "secret");
}

TEST_CASE("content store: a forged content of terabytes is not read") {
  const TemporaryDirectory directory;
  auto store = ContentStore::open(directory.fd());
  REQUIRE(store);
  const std::string revision = revision_of("content");
  std::ofstream(directory / "contents" / revision) << "content";
  std::filesystem::resize_file(directory / "contents" / revision, std::uint64_t{4} << 40);
  CHECK(code_of(store->open_content(revision)) == "content_expired");
}

TEST_CASE("file history: forged lines are ignored") {
  const TemporaryDirectory directory;
  const FileHistory history(directory.fd());
  const std::string revision(32, 'a');
  const std::string id = "change_0123456789abcdef";
  std::ofstream(directory / "files_seen") << "\nann\t/a\t../../etc/passwd\n";
  CHECK_FALSE(history.last_seen("ann", "/a"));
  for (const std::string& line :
       {fmt::format("/a\tchange_1\t{0}\t{0}\t644", revision), fmt::format("/a\t{}\t../x\t{}\t644", id, revision),
        fmt::format("/a\t{}\t{}\tshort\t644", id, revision), fmt::format("/a\t{0}\t{1}\t{1}\t99999", id, revision),
        fmt::format("/a\t{0}\t{1}\t{1}\t37777777777777777777", id, revision),
        fmt::format("/a\t{0}\t{1}\t{1}\t644x", id, revision)}) {
    CAPTURE(line);
    std::ofstream(directory / "files_changed") << "\n" << line << "\n";
    CHECK_FALSE(history.find_change("/a", std::nullopt));
  }
  std::ofstream(directory / "files_changed") << fmt::format("\n/a\t{0}\t{1}\t{1}\t644\n", id, revision);
  CHECK(history.find_change("/a", std::nullopt)->mode == 0644);
}

TEST_CASE("record: a number out of range makes the record damaged") {
  for (const char* fields :
       {R"("startedAtMs":-1)", R"("startedAtMs":18446744073709551615)", R"("startedUptimeMs":-9223372036854775808)",
        R"("startedUptimeMs":1e300)", R"("pid":-1)", R"("pid":4294967296)", R"("pid":1,"control":0)",
        R"("pid":1,"control":300)", R"("end":1,"endCode":256)", R"("end":1,"endCode":-1)",
        R"("end":1,"endCode":4294967296)", R"("end":1,"endedAtMs":9223372036854775807)",
        R"("end":1,"endedUptimeMs":-9223372036854775808)", R"("end":1,"taken":[["k","c",1,2,18446744073709551615]])",
        R"("end":1,"taken":[["k","c",-1,2,3]])", R"("end":1,"taken":{"a":1})"}) {
    CAPTURE(fields);
    CHECK(code_of(record_with(fields)) == "record_damaged");
  }
}

TEST_CASE("record: the name of a keeper cannot lead out of the state directory") {
  for (const char* name : {"../../run/docker.sock", "keeper_1/../../x", "keeper_1 2", "x", "keeper_.."}) {
    CAPTURE(name);
    CHECK(code_of(record_with(fmt::format(R"("pid":1,"keeper":"{}")", name))) == "record_damaged");
  }
  const std::string long_name = "keeper_" + std::string(100, '1');
  CHECK(code_of(record_with(fmt::format(R"("pid":1,"keeper":"{}")", long_name))) == "record_damaged");
  CHECK(record_with(R"("pid":1,"keeper":"keeper_7_1700000000001")"));
}

TEST_CASE("record: texts are cut to fit into a reply") {
  const std::string text(1 << 20, 'x');
  const auto record = record_with(
      fmt::format(R"("command":"{0}","cwd":"{0}","owner":"{0}","rationale":"{0}","boot":"{0}","call":"{0}")", text));
  REQUIRE(record);
  const Meta& meta = record->meta;
  CHECK(meta.command.size() == k_command_preview_bytes);
  const std::size_t all = meta.command.size() + meta.cwd.size() + meta.owner.size() + meta.rationale.size() +
                          meta.started.boot.size() + meta.call.size();
  CHECK(all * 6 < wire::k_max_head_bytes);  // a byte may be encoded as \u00xx
}

TEST_CASE("state directory: an invalid id in the list of expired ids is ignored") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "expired") << "../../etc/x_key\nproc_1_other\n";
  const StateDirectory state = open_state(directory);
  CHECK_FALSE(state.namesake("proc_1_key"));
  CHECK(state.namesake("proc_2_other") == "proc_1_other");
}

TEST_CASE("keeper link: forged counts of accepted input are rejected") {
  const auto answered = [](const OnceAnswer& answer) {
    const std::string payload(reinterpret_cast<const char*>(&answer), sizeof answer);
    return once_answer_in({{}, payload}).has_value();
  };
  CHECK(answered({1, 2, 3, 1, {}}));
  CHECK_FALSE(answered({k_max, 0, 0, 1, {}}));
  CHECK_FALSE(answered({0, k_max, 0, 1, {}}));
  CHECK_FALSE(answered({0, 0, k_max, 1, {}}));
  CHECK_FALSE(answered({0, 0, 0, 3, {}}));
}

TEST_CASE("keeper link: a state with a number out of range is rejected") {
  REQUIRE(state_in(packet_of(StatePacket{})));
  const auto forge = [](auto change) {
    StatePacket state;
    change(state);
    return state_in(packet_of(state)).has_value();
  };
  CHECK_FALSE(forge([](StatePacket& it) { it.phase = 3; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.end = 4; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.end_code = 256; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.end_code = -1; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.pid = -1; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.pid = std::int64_t{1} << 40; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.out_total = k_max; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.err_total = wire::k_max_stream_bytes + 1; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.idle_ms = k_max; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.starved_ms = k_max; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.ended_at_ms = -1; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.ended_uptime_ms = INT64_MAX; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.children = UINT32_MAX; }));
  CHECK_FALSE(forge([](StatePacket& it) { it.used.peak_memory_kib = k_max; }));
}
