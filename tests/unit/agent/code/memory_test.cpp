#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agent/code/memory_policy.hpp"
#include "agent/code/memory_use.hpp"
#include "agent/code/side_events.hpp"
#include "support/temporary_directory.hpp"
#include "wire/side_channel.hpp"

using namespace dockbridge;
using agent::is_driver_idle;
using agent::MemoryPolicy;
using agent::MemoryUse;
using agent::Relief;

namespace {

const Clock::time_point k_check_time = Clock::time_point(seconds(1000));

/// Statistics of the kernel.
struct Statistics {
  test::TemporaryDirectory root;

  const Statistics& with(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << content;
    return *this;
  }
  [[nodiscard]] std::optional<MemoryUse> use() const { return agent::read_memory_use(root.path().string() + "/"); }
};

constexpr const char* k_meminfo = "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     300 kB\n";

std::string side_piece(const std::string& bytes) {
  wire::SidePieceHeader header;
  header.size = static_cast<std::uint32_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + bytes;
}

const std::string k_ready_line = R"({"event":"ready","version":"3.11.2"})"
                                 "\n";
const std::string k_begin_line = R"({"event":"begin","cell":1,"key":"ab"})"
                                 "\n";
const std::string k_end_line = R"({"event":"end","cell":1,"status":"ok"})"
                               "\n";

}  // namespace

TEST_CASE("memory use: the limit of cgroup v2 counts, without inactive files") {
  const Statistics files;
  files.with("sys/fs/cgroup/memory.max", "1000000\n").with("sys/fs/cgroup/memory.current", "900000\n");
  files.with("sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 300000\nactive_file 5\n");
  files.with("proc/meminfo", k_meminfo);
  const auto use = files.use();
  REQUIRE(use);
  CHECK(use->used == 600'000);
  CHECK(use->limit == 1'000'000);
}

TEST_CASE("memory use: the limit of cgroup v1 counts") {
  const Statistics files;
  files.with("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
  files.with("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n");
  files.with("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n");
  const auto use = files.use();
  REQUIRE(use);
  CHECK(use->used == 3000);
  CHECK(use->limit == 5000);
}

TEST_CASE("memory use: without a limit, the memory of the machine counts") {
  const Statistics files;
  files.with("proc/meminfo", k_meminfo);
  for (const char* limit : {"max\n", "", "0\n", "x"}) {
    CAPTURE(limit);
    files.with("sys/fs/cgroup/memory.max", limit).with("sys/fs/cgroup/memory.current", "1\n");
    files.with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    files.with("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n");
    const auto use = files.use();
    REQUIRE(use);
    CHECK(use->used == 700);
    CHECK(use->limit == 1000);
  }
}

TEST_CASE("memory use: unknown without statistics") {
  const Statistics files;
  CHECK_FALSE(files.use());
  files.with("proc/meminfo", "MemTotal: 5 kB\n");
  CHECK_FALSE(files.use());
}

TEST_CASE("memory policy: nothing is ended up to 95 percent") {
  MemoryPolicy policy;
  CHECK(policy.check({95, 100}, true, k_check_time) == Relief::none);
  CHECK(policy.next_check() - k_check_time == seconds(1));
}

TEST_CASE("memory policy: warm interpreters are dropped before sessions") {
  MemoryPolicy policy;
  CHECK(policy.check({96, 100}, true, k_check_time) == Relief::warm_interpreters);
  CHECK(policy.next_check() - k_check_time == seconds(1));
  CHECK(policy.check({96, 100}, false, k_check_time) == Relief::idle_session);
}

TEST_CASE("memory policy: a session that was ended has time to free its memory") {
  MemoryPolicy policy;
  CHECK(policy.check({100, 100}, false, k_check_time) == Relief::idle_session);
  CHECK(policy.next_check() - k_check_time > seconds(2));
}

TEST_CASE("side events: a driver is idle after every event that is not part of a cell") {
  CHECK(is_driver_idle(side_piece(k_ready_line)));
  CHECK(is_driver_idle(side_piece(k_ready_line) + side_piece(k_begin_line + k_end_line)));
  CHECK(is_driver_idle(side_piece(k_end_line + R"({"request":7,"event":"pong"})"
                                               "\n")));
  CHECK(is_driver_idle(side_piece(k_end_line + R"({"event":"stale","cell":2})"
                                               "\n")));
  CHECK_FALSE(is_driver_idle(side_piece(k_ready_line + k_begin_line)));
  CHECK_FALSE(is_driver_idle(side_piece(k_begin_line + R"({"event":"display","data":{}})"
                                                       "\n")));
}

TEST_CASE("side events: an incomplete end of the stream is not idle") {
  CHECK_FALSE(is_driver_idle(""));
  CHECK_FALSE(is_driver_idle("garbage"));
  CHECK_FALSE(is_driver_idle(side_piece("\n")));
  CHECK_FALSE(is_driver_idle(side_piece(R"({"event":"end","cell")")));
  CHECK_FALSE(is_driver_idle(side_piece(k_end_line).substr(0, 30)));
}

TEST_CASE("side events: the text may begin in the middle of a piece") {
  const std::string stream = side_piece(k_ready_line) + side_piece(k_begin_line) + side_piece(k_end_line);
  const std::size_t last = stream.size() - side_piece(k_end_line).size();
  for (std::size_t from = 0; from <= stream.size(); ++from) {
    CAPTURE(from);
    CHECK(is_driver_idle(std::string_view(stream).substr(from)) == (from <= last));
  }
  // A header inside an event is not a piece.
  const std::string tricky = side_piece(R"({"event":"begin","cell":1,"key":"side0000side"})"
                                        "\n" +
                                        k_end_line);
  CHECK(is_driver_idle(tricky));
}

TEST_CASE("side events: an event that was split over pieces is read whole") {
  const std::string half = R"({"event":"disp)";
  CHECK_FALSE(is_driver_idle(side_piece(k_begin_line + half) + side_piece(R"(lay","data":{}})"
                                                                          "\n")));
  // Its beginning is not known.
  CHECK_FALSE(is_driver_idle(side_piece(R"(lay","data":{}})"
                                        "\n")));
}
