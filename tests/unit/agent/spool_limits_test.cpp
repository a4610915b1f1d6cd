#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "unit/agent/spool_stream.hpp"

using namespace dockbridge;
using namespace dockbridge::agent::test;
using agent::SpoolCaps;
using agent::SpoolReader;
using agent::SpoolWriter;

namespace {

/// Runs `work` in a forked child in which no file can exceed `bytes`, as on a full disk.
template <typename Work>
void with_file_size_limit(rlim_t bytes, const Work& work) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    work();
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

}  // namespace

TEST_CASE("spool: bytes that do not fit on a full disk are counted as the gap") {
  const TemporaryDirectory directory;

  SUBCASE("in the head: earlier bytes stay, later ones are not stored as head") {
    with_file_size_limit(k_header_bytes + 50, [&] {
      SpoolWriter writer(directory.fd(), "out", {100, 100});
      append_next(writer, 40);
      append_next(writer, 20);
      append_next(writer, 7);
    });
    const auto reader = open_reader(directory);
    check_state(state_of(reader), {67, 40, 67});
    check_held_bytes(reader, 100);
  }
  SUBCASE("in the tail: the head stays") {
    with_file_size_limit(k_header_bytes + 120, [&] {
      SpoolWriter writer(directory.fd(), "out", {100, 100});
      append_next(writer, 110);
      append_next(writer, 30);
    });
    const auto reader = open_reader(directory);
    check_state(state_of(reader), {140, 100, 140});
    check_held_bytes(reader, 100);
  }
  SUBCASE("when there is space again, later bytes are stored") {
    // The second half of the ring does not fit, the first half does.
    with_file_size_limit(k_header_bytes + 150, [&] {
      SpoolWriter writer(directory.fd(), "out", {100, 100});
      append_next(writer, 140);
      append_next(writer, 60);
      append_next(writer, 30);
    });
    const auto reader = open_reader(directory);
    check_state(state_of(reader), {230, 100, 200});
    check_held_bytes(reader, 100);
  }
}

TEST_CASE("spool: is created when there is space for its header, with a gap before that") {
  const TemporaryDirectory directory;
  with_file_size_limit(100, [&] {
    SpoolWriter writer(directory.fd(), "out", {100, 100});
    append_next(writer, 40);
    if (::faccessat(directory.fd(), "out", F_OK, 0) == 0) {
      ::_exit(1);
    }
    const rlimit roomy{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &roomy);
    append_next(writer, 20);
  });
  const auto reader = open_reader(directory);
  check_state(state_of(reader), {60, 0, 40});
  check_held_bytes(reader, 100);
}

TEST_CASE("spool: an append counts even if no file can be created") {
  SpoolWriter writer(-1, "out", {8, 5});
  append_next(writer, 40);
  append_next(writer, 2);
  CHECK(writer.total() == 42);
}

TEST_CASE("spool: trim keeps the first and last part permanently and counts the gap") {
  const TemporaryDirectory directory;
  constexpr std::uint64_t k_mebi = 1024 * 1024;
  SpoolWriter writer(directory.fd(), "out", {k_mebi, k_mebi});
  const auto on_disk = [&] {
    struct stat info {};
    REQUIRE(::fstatat(directory.fd(), "out", &info, 0) == 0);
    return static_cast<std::uint64_t>(info.st_blocks) * 512;
  };
  const SpoolReader reader = [&] {
    append_next(writer, 100);
    return open_reader(directory);
  }();
  const auto check_kept = [&](std::uint64_t head, std::uint64_t tail) {
    const StreamState state = state_of(reader);
    CHECK(state.total == writer.total());
    CHECK(state.head_end == head);
    CHECK(state.total - state.tail_start == tail);
    check_held_bytes(reader, 50'000);
  };
  constexpr std::uint64_t k_part = 128 * 1024;

  SUBCASE("when the ring was overwritten") {
    append_next(writer, 5 * k_mebi + 4321);
  }
  SUBCASE("when there was no gap") {
    append_next(writer, k_mebi + 1234);
  }
  SUBCASE("when all bytes were in the head") {
    append_next(writer, k_mebi / 2);
  }
  writer.trim(2 * k_part);
  check_kept(k_part, k_part);
  CHECK(on_disk() <= 2 * k_part + 4 * 4096);
  for (int i = 0; i < 300; ++i) {
    append_next(writer, 9999);
    check_kept(k_part, k_part);
    CHECK(on_disk() <= 2 * k_part + 8 * 4096);
  }
}

TEST_CASE("spool: trim of an empty spool loses nothing until the limit is exceeded") {
  const TemporaryDirectory directory;
  SpoolWriter writer(directory.fd(), "out", {1024 * 1024, 1024 * 1024});
  writer.trim(256 * 1024);
  while (writer.total() < 256 * 1024) {
    append_next(writer, 4096);
    const SpoolReader reader = open_reader(directory);
    const StreamState state = state_of(reader);
    CHECK(state.head_end == state.tail_start);
    check_held_bytes(reader, 50'000);
  }
  append_next(writer, 4096);
  const StreamState state = state_of(open_reader(directory));
  CHECK(state.tail_start - state.head_end == 4096);
}

TEST_CASE("spool: a reader during a trim gets no freed bytes") {
  const TemporaryDirectory directory;
  constexpr std::uint64_t k_mebi = 1024 * 1024;
  SpoolWriter writer(directory.fd(), "out", {4 * k_mebi, 4 * k_mebi});
  append_next(writer, 8 * k_mebi);
  std::atomic<bool> done = false;
  std::thread trimmer([&] {
    for (std::uint64_t limit = 8 * k_mebi; limit > 512 * 1024; limit -= 64 * 1024) {
      writer.trim(limit);
    }
    done = true;
  });
  const SpoolReader reader = open_reader(directory);
  bool exact = true;
  for (std::uint64_t offset = 0; !done; offset = (offset + 77'777) % (8 * k_mebi)) {
    const auto slice = reader.read(offset, 100'000);
    exact = exact && slice && slice->bytes == stream_bytes(slice->offset, slice->bytes.size());
  }
  trimmer.join();
  CHECK(exact);
}
