#include "agent/session/process_numbers.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <thread>

#include "support/temporary_directory.hpp"
#include "wire/process_state.hpp"

using namespace dockbridge;
using agent::ProcessNumbers;

namespace {

/// A temporary directory with the indexes of processes.
class Directory {
 public:
  [[nodiscard]] ProcessNumbers open() const { return ProcessNumbers(m_fd.get()); }
  /// The only index in it.
  [[nodiscard]] std::filesystem::path index() const {
    return std::filesystem::directory_iterator(m_directory.path())->path();
  }

 private:
  test::TemporaryDirectory m_directory;
  Fd m_fd{::open(m_directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

/// During its lifetime no file can grow beyond this size, as if the disk were full.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &m_before);
    m_handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, m_before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &m_before);
    std::signal(SIGXFSZ, m_handler);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  rlimit m_before{};
  sighandler_t m_handler;
};

std::set<std::string> candidates(ProcessNumbers& numbers, const std::string& owner, std::uint64_t number) {
  const auto found = numbers.candidates(owner, number);
  return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("process numbers: each owner has its own, starting with 1") {
  const Directory directory;
  ProcessNumbers numbers = directory.open();
  CHECK(numbers.assign("alice", "proc_1_a") == 1);
  CHECK(numbers.assign("alice", "proc_1_b") == 2);
  CHECK(numbers.assign("bob", "proc_1_c") == 1);
  CHECK(candidates(numbers, "alice", 2).contains("proc_1_b"));
  CHECK(candidates(numbers, "bob", 1) == std::set<std::string>{"proc_1_c"});
  CHECK(candidates(numbers, "bob", 2).empty());
  CHECK(candidates(numbers, "carol", 1).empty());
  CHECK(numbers.highest("alice") == 2);
  CHECK(numbers.highest("carol") == 0);
}

TEST_CASE("process numbers: another session continues the sequence") {
  const Directory directory;
  const std::string longest = "proc_1_" + std::string(57, 'z');
  REQUIRE(wire::is_process_id(longest));
  CHECK(directory.open().assign("local", longest) == 1);
  ProcessNumbers later = directory.open();
  CHECK(later.assign("local", "proc_2_a") == 2);
  CHECK(candidates(later, "local", 1).contains(longest));
}

TEST_CASE("process numbers: concurrent sessions get distinct numbers") {
  const Directory directory;
  constexpr int k_sessions = 4;
  constexpr int k_each = 500;
  std::array<std::vector<std::uint64_t>, k_sessions> given;
  std::vector<std::thread> sessions;
  for (int session = 0; session < k_sessions; ++session) {
    sessions.emplace_back([&, session] {
      ProcessNumbers numbers = directory.open();
      for (int i = 0; i < k_each; ++i) {
        given[session].push_back(numbers.assign("local", fmt::format("proc_{}_{}", session, i)));
      }
    });
  }
  for (std::thread& session : sessions) {
    session.join();
  }
  std::set<std::uint64_t> all;
  ProcessNumbers numbers = directory.open();
  for (int session = 0; session < k_sessions; ++session) {
    for (int i = 0; i < k_each; ++i) {
      all.insert(given[session][i]);
      CHECK(candidates(numbers, "local", given[session][i]).contains(fmt::format("proc_{}_{}", session, i)));
    }
  }
  CHECK(all.size() == k_sessions * k_each);
  CHECK(*all.begin() == 1);
  CHECK(*all.rbegin() == k_sessions * k_each);
}

TEST_CASE("process numbers: none on a full disk, and no reuse afterwards") {
  const Directory directory;
  ProcessNumbers numbers = directory.open();
  REQUIRE(numbers.assign("local", "proc_1_a") == 1);
  {
    const SizeLimit full(100);  // in the middle of a slot
    CHECK(numbers.assign("local", "proc_1_b") == 0);
    CHECK(numbers.assign("local", "proc_1_c") == 0);
  }
  std::set<std::uint64_t> given{1};
  for (int i = 0; i < 10; ++i) {
    const std::string process = fmt::format("proc_2_{}", i);
    const auto number = numbers.assign("local", process);
    CHECK(number > 0);
    CHECK(given.insert(number).second);
    CHECK(candidates(numbers, "local", number).contains(process));
  }
}

TEST_CASE("process numbers: a forged index gives no number out of range") {
  const Directory directory;
  REQUIRE(directory.open().assign("local", "proc_1_a") == 1);
  const auto index = directory.index();
  ProcessNumbers numbers = directory.open();
  SUBCASE("very long") {
    std::filesystem::resize_file(index, std::uintmax_t{1} << 40U);
    CHECK(numbers.assign("local", "proc_1_b") == 0);
    CHECK(candidates(numbers, "local", 5'000'000).empty());
  }
  SUBCASE("garbage") {
    std::ofstream(index) << std::string(72, 'x') << "../../etc/passwd\nproc_1_/x\n" << std::string(1000, '\0');
    CHECK(candidates(numbers, "local", 1).empty());
    CHECK(candidates(numbers, "local", 2).empty());
    CHECK(numbers.assign("local", "proc_1_b") > 1);
  }
  SUBCASE("not a file") {
    std::filesystem::remove(index);
    std::filesystem::create_directory(index);
    CHECK(numbers.assign("local", "proc_1_b") == 0);
    CHECK(candidates(numbers, "local", 1).empty());
    CHECK(numbers.highest("local") == 0);
  }
  CHECK(candidates(numbers, "local", 0).empty());
  CHECK(candidates(numbers, "local", std::numeric_limits<std::uint64_t>::max()).empty());
}

TEST_CASE("process numbers: the size of an index on disk is bounded") {
  const Directory directory;
  REQUIRE(directory.open().assign("local", "proc_1_a") == 1);
  const auto index = directory.index();
  constexpr std::uint64_t k_slots = 128 * 1024;
  {
    std::ofstream file(index, std::ios::app);
    const std::string slot = "proc_1_x" + std::string(64, '\n');
    for (std::uint64_t i = 1; i < k_slots - 1; ++i) {
      file << slot;
    }
  }
  ProcessNumbers numbers = directory.open();
  CHECK(numbers.assign("local", "proc_1_b") == k_slots);
  struct stat info {};
  REQUIRE(::stat(index.c_str(), &info) == 0);
  CHECK(info.st_blocks * 512 < 5 * 1024 * 1024);
  CHECK(candidates(numbers, "local", 1).empty());
  CHECK(candidates(numbers, "local", k_slots).contains("proc_1_b"));
  CHECK(numbers.assign("local", "proc_1_c") == k_slots + 1);
}

TEST_CASE("process numbers: more owners than open files") {
  const Directory directory;
  ProcessNumbers numbers = directory.open();
  for (const std::uint64_t round : {1U, 2U}) {
    for (int owner = 0; owner < 100; ++owner) {
      CHECK(numbers.assign(fmt::format("owner {}", owner), "proc_1_a") == round);
    }
  }
}

TEST_CASE("process numbers: a new number exceeds those that the host knows") {
  const Directory directory;
  ProcessNumbers numbers = directory.open();
  CHECK(numbers.assign("local", "proc_1_a", 40) == 41);
  CHECK(candidates(numbers, "local", 41).contains("proc_1_a"));
  CHECK(numbers.assign("local", "proc_1_b", 40) == 42);
  CHECK(numbers.assign("local", "proc_1_c") == 43);
  CHECK(numbers.highest("local") == 43);
  CHECK(numbers.assign("local", "proc_1_d", std::numeric_limits<std::uint64_t>::max()) == 44);
}

TEST_CASE("process numbers: an index has only the processes of its owner") {
  const Directory directory;
  ProcessNumbers numbers = directory.open();
  for (int i = 0; i < 3000; ++i) {
    numbers.assign("alice", fmt::format("proc_1_{:04}", i));
  }
  numbers.assign("bob", "proc_1_bob");
  for (const char* own : {"proc_1_0000", "proc_1_1023", "proc_1_1024", "proc_1_2999"}) {
    CHECK(numbers.has("alice", own));
    CHECK_FALSE(numbers.has("bob", own));
  }
  CHECK(numbers.has("bob", "proc_1_bob"));
  CHECK_FALSE(numbers.has("alice", "proc_1_bob"));
  CHECK_FALSE(numbers.has("alice", "proc_1_3000"));
  CHECK_FALSE(numbers.has("alice", "roc_1_0000"));
  CHECK_FALSE(numbers.has("carol", "proc_1_0000"));
}
