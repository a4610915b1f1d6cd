#include "sandbox/greeting.hpp"

#include <poll.h>

#include <array>
#include <string_view>

#include "util/text.hpp"

namespace dockbridge::sandbox {

namespace {

/// Makes the texts printable: they go to logs and to people.
Result<Hello> parse_hello(const nlohmann::json& head) {
  constexpr std::size_t k_max_text = 500;
  auto hello = wire::hello_from_greeting(head);
  if (!hello) {
    return fail(hello.error());
  }
  for (std::string* text : {&hello->version, &hello->machine, &hello->shell, &hello->state_directory, &hello->home}) {
    *text = printable_line(*text, k_max_text);
  }
  return Hello{std::move(*hello)};
}

}  // namespace

Result<Hello> read_greeting(ByteStream& stream, wire::FrameReader& reader, Deadline deadline) {
  std::string start;
  std::array<char, 4096> buffer{};
  const auto failed = [&](const std::string& why) {
    const std::string printed = printable_line(start + stream.stderr_text(), 500);
    return fail(ErrorCode::agent_failed, "The agent did not start: " + (printed.empty() ? why : printed));
  };
  bool greeted = false;
  while (true) {
    if (!greeted && start.size() >= wire::k_magic.size()) {
      if (!start.starts_with(wire::k_magic)) {
        return failed("no greeting");
      }
      reader.feed(std::string_view(start).substr(wire::k_magic.size()));
      greeted = true;
    }
    if (greeted) {
      auto frame = reader.next();
      if (!frame) {
        return fail(frame.error());
      }
      if (*frame) {
        return parse_hello((*frame)->head);
      }
    }
    const auto got = stream.read(buffer);
    if (!got) {
      return failed(got.error().message);
    }
    if (*got > 0) {
      const std::string_view bytes(buffer.data(), *got);
      greeted ? reader.feed(bytes) : static_cast<void>(start.append(bytes));
      continue;
    }
    pollfd polled{stream.read_fd(), POLLIN, 0};
    if (deadline.passed() && !greeted && !wire::k_magic.starts_with(start)) {
      return failed("no greeting");
    }
    if (deadline.passed()) {
      return fail(ErrorCode::timed_out, "The agent did not send its greeting in time",
                  "Check with `docker stats` whether the container is paused or overloaded");
    }
    ::poll(&polled, 1, static_cast<int>(deadline.remaining().count()));
  }
}

}  // namespace dockbridge::sandbox
