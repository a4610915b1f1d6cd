#include "mcp/transport/stdio.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <mutex>

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"
#include "mcp/transport/line_splitter.hpp"
#include "mcp/transport/message_memory.hpp"
#include "util/file.hpp"

namespace dockbridge::mcp {

namespace {

/// Clients close stdin and wait about two seconds before they get rough.
constexpr milliseconds k_finish_patience{1000};
constexpr milliseconds k_detach_patience{500};
/// Memory limit for all running calls, as a multiple of the longest message.
constexpr std::size_t k_most_under_way = 2;
/// A long reply goes out in one piece, if stdout is a pipe and may be so large.
constexpr int k_pipe_bytes = 1024 * 1024;

}  // namespace

StdioEnd serve_stdio(int input_fd, int output_fd, int stop_fd, Hub& hub, WorkerPool& pool, std::size_t max_message,
                     bool& abandoned) {
  ::fcntl(output_fd, F_SETPIPE_SZ, k_pipe_bytes);
  std::mutex output_mutex;
  const auto send = [&](const json& message) {
    const std::string line = dump(message) + "\n";
    const std::lock_guard lock(output_mutex);
    if (!write_all(output_fd, line)) {
      hub.log.debug("the client does not read any more");
    }
  };
  const auto sink = std::make_shared<DirectSink>(send);
  const auto conversation = Conversation::begin(hub, {}, sink);
  LineSplitter lines(max_message);
  constexpr auto k_room = MessageMemory::room_for;
  MessageMemory under_way(k_most_under_way * k_room(max_message), k_most_under_way * k_room(max_message));
  StdioEnd end = StdioEnd::input_ended;
  std::array<char, 64 * 1024> buffer;
  while (true) {
    std::array<pollfd, 2> polled = {pollfd{input_fd, POLLIN, 0}, pollfd{stop_fd, POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) {
      break;
    }
    if (polled[1].revents != 0) {
      end = StdioEnd::stopped;
      break;
    }
    if (polled[0].revents == 0) {
      continue;
    }
    const ssize_t got = ::read(input_fd, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    lines.feed(
        {buffer.data(), static_cast<std::size_t>(got)},
        [&](std::string_view line) {
          const auto claim = under_way.claim(conversation->caller().owner, line.size());
          bool room = claim != nullptr;
          // Parse even if the limit is exceeded, because the refusal needs the id. Only one message at a time is
          // parsed, and its size is limited.
          auto parsed = parse_json(line, [&](std::size_t bytes) {
            room = room && claim->grow(bytes);
            return true;
          });
          if (const auto* malformed = std::get_if<Malformed>(&parsed)) {
            conversation->refuse(*malformed);
            return;
          }
          for (const auto& call : conversation->receive(std::move(std::get<json>(parsed)), sink)) {
            if (!room || !pool.submit([claim, call] { call->make(); })) {
              call->refuse();
            }
          }
        },
        [&] {
          conversation->refuse(
              {nullptr, k_invalid_request,
               fmt::format("the message is longer than {} bytes; --max-message allows more", max_message)});
        });
  }
  conversation->end_listening();
  abandoned = false;
  if (!conversation->wait_for_calls(Deadline::after(k_finish_patience))) {
    conversation->detach_calls();
    abandoned = !conversation->wait_for_calls(Deadline::after(k_detach_patience));
  }
  return end;
}

}  // namespace dockbridge::mcp
