#include "agent/session/file_workers.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string_view>

#include "agent/launch.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::agent;

namespace {

/// This program is also started as the file worker, which here answers nothing.
[[gnu::constructor]] void wait_as_worker(int argc, char** argv) {
  char byte = 0;
  if (argc > 1 && std::string_view(argv[1]) == k_files_role) {
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
    ::_exit(0);
  }
}

struct NoReplies : Replies {
  void forward(std::string_view) override {}
  void send_frame(const nlohmann::json&, std::string_view) override {}
};

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("file workers: two images are decoded at a time, and a third waits") {
  constexpr std::ptrdiff_t k_per_worker = 2;  // a socket and a pidfd
  const test::TemporaryDirectory state;
  EventLoop loop;
  NoReplies replies;
  FileWorkers workers(loop, state.path().string(), replies);
  const std::ptrdiff_t before = open_descriptors();
  const auto running = [&] { return (open_descriptors() - before) / k_per_worker; };
  const auto submit = [&](std::uint64_t id, wire::Operation operation) {
    workers.submit({id, operation, "", wire::RawFrame(wire::encode({{"id", id}}), 0)});
  };
  for (std::uint64_t id = 1; id <= 3; ++id) {
    submit(id, wire::Operation::file_image);
  }
  CHECK(running() == 2);
  submit(4, wire::Operation::file_read);
  CHECK(running() == 3);
  workers.cancel(1);  // ends its worker, and starts one for the third image
  CHECK(running() == 3);
  workers.cancel(3);
  CHECK(running() == 2);
}
