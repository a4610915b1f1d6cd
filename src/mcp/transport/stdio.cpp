#include "mcp/transport/stdio.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"
#include "mcp/message_memory.hpp"
#include "mcp/transport/line_splitter.hpp"
#include "util/file.hpp"
#include "util/mutex.hpp"
#include "util/wakeup.hpp"

namespace dockbridge::mcp {

namespace {

/// Clients close stdin and wait about two seconds before they send a signal.
constexpr milliseconds k_finish_patience{1000};
constexpr milliseconds k_detach_patience{500};
/// Memory limit for all running calls, as a multiple of the longest message.
constexpr std::size_t k_max_running_messages = 2;
/// The only client may have as many calls as the server.
constexpr std::size_t k_no_limit = std::numeric_limits<std::size_t>::max();
/// Capacity that a stdout pipe gets if permitted, so that a long reply is written at once.
constexpr int k_pipe_bytes = 1024 * 1024;

/// The client on the other end of the descriptors, and its conversation.
class StdioClient {
 public:
  StdioClient(int input_fd, int output_fd, Hub& hub, CallScheduler& scheduler, std::size_t max_message)
      : m_input_fd(input_fd),
        m_output_fd(output_fd),
        m_log(hub.log),
        m_scheduler(scheduler),
        m_max_message(max_message),
        m_sink(std::make_shared<DirectSink>([this](const json& message) { return send(message); })),
        m_conversation(Conversation::begin(hub, {}, m_sink)),
        m_lines(max_message),
        m_under_way(k_max_running_messages * MessageMemory::room_for(max_message),
                    k_max_running_messages * MessageMemory::room_for(max_message)) {}

  [[nodiscard]] Conversation& conversation() { return *m_conversation; }
  /// Refuses calls from now on. Notifications and answers still take effect.
  void refuse_calls() { m_takes_calls = false; }
  /// Reads once and handles the complete lines; false at the end of the input.
  bool read_once() {
    const ssize_t got = ::read(m_input_fd, m_buffer.data(), m_buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      return true;
    }
    if (got <= 0) {
      return false;
    }
    m_lines.feed(
        {m_buffer.data(), static_cast<std::size_t>(got)}, [this](std::string_view line) { take(line); },
        [this] {
          m_conversation->refuse(
              {nullptr, k_invalid_request,
               fmt::format("Message exceeds {} bytes. --max-message raises the limit", m_max_message)});
        });
    return true;
  }

 private:
  bool send(const json& message) {
    const std::string line = dump(message) + "\n";
    const MutexLock lock(m_output_mutex);
    const bool sent = static_cast<bool>(write_all(m_output_fd, line));
    if (!sent) {
      m_log.debug("the client no longer reads");
    }
    return sent;
  }

  void take(std::string_view line) {
    const auto claim = m_under_way.claim(m_conversation->caller().owner, line.size());
    bool room = claim != nullptr;
    // Parse even if the limit is exceeded, because the refusal needs the id. Only one message at a time is
    // parsed, and its size is limited.
    auto parsed = parse_json(line, [&](std::size_t bytes) {
      room = room && claim->grow(bytes);
      return true;
    });
    if (const auto* malformed = std::get_if<Malformed>(&parsed)) {
      m_conversation->refuse(*malformed);
      return;
    }
    for (const auto& call : m_conversation->receive(std::move(std::get<json>(parsed)), m_sink)) {
      if (!m_takes_calls) {
        call->refuse({Refusal::Reason::stopping});
      } else if (!room) {
        m_scheduler.reject_size(*call);
      } else {
        m_scheduler.submit(call, {m_conversation->caller().owner, k_no_limit, claim});
      }
    }
  }

  const int m_input_fd;
  const int m_output_fd GUARDED_BY(m_output_mutex);
  Log& m_log;
  CallScheduler& m_scheduler;
  const std::size_t m_max_message;
  Mutex m_output_mutex;  // held while a line is written, so that lines do not mix
  const std::shared_ptr<DirectSink> m_sink;
  const std::shared_ptr<Conversation> m_conversation;
  LineSplitter m_lines;
  MessageMemory m_under_way;
  bool m_takes_calls = true;
  std::array<char, 64UL * 1024> m_buffer;
};

/// Waits for either descriptor. A negative one is ignored. Returns which can be read; nullopt if polling fails.
std::optional<std::array<bool, 2>> wait_for_either(int first, int second) {
  std::array<pollfd, 2> polled = {pollfd{first, POLLIN, 0}, pollfd{second, POLLIN, 0}};
  while (::poll(polled.data(), polled.size(), -1) < 0) {
    if (errno != EINTR) {
      return std::nullopt;
    }
  }
  return std::array<bool, 2>{polled[0].revents != 0, polled[1].revents != 0};
}

/// Waits for the running calls and detaches those that remain. Input is still read, because a client that is
/// interrupted together with this server cancels its calls a few milliseconds later. Returns whether all calls have
/// returned.
bool finish_calls(StdioClient& client, int input_fd, bool input_open) {
  bool all_returned = false;
  const Wakeup finished;
  std::thread waiter([&] {
    all_returned = client.conversation().wait_for_calls(Deadline::after(k_finish_patience));
    if (!all_returned) {
      client.conversation().detach_calls();
      all_returned = client.conversation().wait_for_calls(Deadline::after(k_detach_patience));
    }
    finished.wake();
  });
  while (const auto ready = wait_for_either(input_open ? input_fd : -1, finished.fd())) {
    if ((*ready)[1]) {
      break;
    }
    if ((*ready)[0]) {
      input_open = client.read_once();
    }
  }
  waiter.join();
  return all_returned;
}

}  // namespace

StdioEnd serve_stdio(int input_fd, int output_fd, int stop_fd, Hub& hub, CallScheduler& scheduler,
                     std::size_t max_message, bool& abandoned) {
  ::fcntl(output_fd, F_SETPIPE_SZ, k_pipe_bytes);
  StdioClient client(input_fd, output_fd, hub, scheduler, max_message);
  StdioEnd end = StdioEnd::input_ended;
  bool input_open = true;
  while (input_open) {
    const auto ready = wait_for_either(input_fd, stop_fd);
    if (!ready) {
      break;
    }
    if ((*ready)[1]) {
      end = StdioEnd::stopped;
      break;
    }
    if ((*ready)[0]) {
      input_open = client.read_once();
    }
  }
  client.refuse_calls();
  if (end == StdioEnd::stopped) {
    scheduler.stop();
  }
  client.conversation().end_listening();
  abandoned = !finish_calls(client, input_fd, input_open);
  return end;
}

}  // namespace dockbridge::mcp
