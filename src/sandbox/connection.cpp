#include "sandbox/connection.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>

#include "sandbox/direct_line.hpp"
#include "util/text.hpp"
#include "wire/route.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

constexpr int k_reads_per_turn = 16;
/// A waiting caller checks the clock this often.
constexpr milliseconds k_slice{500};
/// Largest backlog of requests to an agent that does not read.
constexpr std::size_t k_max_queued = 64 * 1024 * 1024;

Error lost(const std::string& why) {
  return {ErrorCode::connection_lost, "Connection to the agent lost: " + why,
          "Call again: that reconnects. Processes keep running"};
}

Result<wire::Frame> answer_of(wire::Frame frame) {
  const auto outcome = wire::outcome_in(frame.head);
  return outcome ? Result<wire::Frame>(std::move(frame)) : fail(outcome.error());
}

template <typename Request>
std::string encode(const Request& request, std::uint64_t id) {
  json head = wire::to_json(request);
  wire::set_id(head, id);
  return wire::encode(head);
}

}  // namespace

Connection::Connection(std::unique_ptr<ByteStream> stream)
    : m_stream(std::move(stream)), m_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), m_liveness(Clock::now()) {}

Result<std::unique_ptr<Connection>> Connection::open(std::unique_ptr<ByteStream> stream, Deadline deadline,
                                                     const std::optional<SharedDirectory>& shared) {
  std::unique_ptr<Connection> connection(new Connection(std::move(stream)));
  auto hello = read_greeting(*connection->m_stream, connection->m_reader, deadline);
  if (!hello) {
    return fail(hello.error());
  }
  connection->m_hello = std::move(*hello);
  if (!connection->m_wake) {
    return fail(ErrorCode::agent_failed, "dockbridge has no file descriptors left");
  }
  if (shared) {
    if (auto moved = connection->go_direct(*shared, deadline); !moved) {
      return fail(moved.error());
    }
  }
  connection->m_idle_thread = std::thread([raw = connection.get()] { raw->idle(); });
  return connection;
}

Connection::~Connection() {
  {
    const MutexLock lock(m_mutex);
    m_closing = true;
  }
  m_closed.notify_all();
  wake();
  if (m_idle_thread.joinable()) {
    m_idle_thread.join();
  }
}

/// Called before there is another thread. It is no error if the agent cannot use the line. Once it does, the stream is
/// not used any more.
Result<void> Connection::go_direct(const SharedDirectory& shared, Deadline deadline) {
  const auto line = DirectLine::offer(shared);
  const auto answer = line ? call(wire::to_json(line->invitation()), {}, deadline, {}) : fail(line.error());
  if (!line || (!answer && answer.error().code == ErrorCode::no_line)) {
    m_hello.detour = printable_line(answer.error().message, 500);
    return {};
  }
  if (!answer) {
    return fail(answer.error());
  }
  auto stream = line->accept(std::move(m_stream));
  if (!stream) {
    return fail(stream.error());
  }
  m_stream = std::move(*stream);
  m_hello.detour.reset();
  return {};
}

void Connection::poll_stream() {
  MutexLock lock(m_mutex);
  if (!m_turn_taken && !m_broken) {
    take_turn(milliseconds(0));
    pass_turn();
  }
}

void Connection::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(m_wake.get(), &one, sizeof one);
}

Result<wire::Frame> Connection::call(json head, std::string_view body, Deadline deadline, const std::stop_token& stop) {
  MutexLock lock(m_mutex);
  if (m_broken) {
    return fail(*m_broken);
  }
  if (body.size() > wire::k_max_body_to_agent) {
    return fail(ErrorCode::too_long, "The request exceeds the size of one message");
  }
  if (m_queue.bytes() + body.size() > k_max_queued) {
    return fail(ErrorCode::agent_busy, "Too many requests wait for the agent");
  }
  const std::uint64_t id = m_next_id++;
  wire::set_id(head, id);
  std::string frame = wire::encode(head, body);
  if (frame.size() - body.size() > wire::k_max_head_bytes) {
    return fail(ErrorCode::too_long, "An argument exceeds 60 KB",
                "Only command, env and input may be longer. Write the data to a file and use that");
  }
  m_queue.push(id, std::move(frame));
  Mailbox& mailbox = m_mailboxes[id];
  if (m_turn_taken) {
    wake();
  }
  const std::stop_callback interrupt(stop, [this] { wake(); });

  const auto silent = [&]() REQUIRES(m_mutex) { return m_liveness.is_silent(Clock::now()); };
  do {
    // In slices, because silence is detected by the clock alone.
    const Deadline slice = deadline.capped(k_slice);
    if (m_turn_taken) {
      mailbox.changed.wait_until(lock, stop, slice.time(),
                                 [&]() REQUIRES(m_mutex) { return mailbox.answer || !m_turn_taken; });
    } else {
      take_turn(slice.remaining());
    }
  } while (!mailbox.answer && !stop.stop_requested() && !silent() && !deadline.passed());
  Result<wire::Frame> result = fail_unknown({ErrorCode::timed_out, "The agent did not answer in time"});
  if (mailbox.answer) {
    result = std::move(*mailbox.answer);
  } else if (stop.stop_requested()) {
    result = fail_unknown({ErrorCode::cancelled, "The call was cancelled"});
  } else if (silent()) {
    result = fail_unknown({ErrorCode::agent_silent, "The agent does not answer"});
  }
  const bool given_up = !mailbox.answer;
  m_mailboxes.erase(id);
  if (given_up && m_queue.remove(id)) {
    result.error().outcome_unknown = false;
  } else if (given_up && !m_broken) {
    const std::uint64_t own_id = m_next_id++;
    m_queue.push_cancellation(own_id, encode(wire::CancelRequest{id}, own_id));
    send_or_wake();
  }
  pass_turn();
  return result;
}

void Connection::post(json head, ReplyHandler on_reply) {
  MutexLock lock(m_mutex);
  if (m_broken) {
    return;
  }
  const std::uint64_t id = m_next_id++;
  wire::set_id(head, id);
  if (on_reply) {
    m_handlers[id] = std::move(on_reply);
  }
  m_queue.push(id, wire::encode(head));
  send_or_wake();
  pass_turn();
}

void Connection::send_or_wake() {
  m_turn_taken ? wake() : take_turn(milliseconds(0));
}

/// Keeps the session alive while no call waits, and detects its end.
void Connection::idle() {
  MutexLock lock(m_mutex);
  while (!m_closing && !m_broken) {
    while (!m_turn_taken && !m_broken) {
      take_turn(milliseconds(0));
      if (m_queue.empty() || !m_writing.empty()) {
        break;  // a ping is written at once, unless the agent does not read
      }
    }
    pass_turn();
    m_closed.wait_for(lock, Liveness::k_busy_ping_interval, [&]() REQUIRES(m_mutex) { return m_closing; });
  }
}

/// Reads and writes once. The lock is released meanwhile.
void Connection::take_turn(milliseconds at_most) {
  m_turn_taken = true;
  m_queue.move_to(m_writing, m_written);
  const bool more_to_write = !m_queue.empty();
  m_mutex.unlock();
  Result<Exchanged> exchanged;
  try {
    exchanged = exchange(at_most, more_to_write);
  } catch (const std::exception& error) {
    exchanged = fail(ErrorCode::io_error, error.what());
  }
  m_mutex.lock();
  m_turn_taken = false;
  if (!exchanged && !m_broken) {
    const bool violation = exchanged.error().code == ErrorCode::protocol_violation;
    break_off(violation ? exchanged.error() : lost(exchanged.error().message));
  }
  if (exchanged && exchanged->wrote_part) {
    m_liveness.note_part_written(Clock::now());
  }
  ping_if_due();
}

Result<Connection::Exchanged> Connection::exchange(milliseconds at_most, bool more_to_write) {
  auto exchanged = write_some();
  if (!exchanged) {
    return exchanged;
  }
  const bool at_once = m_more_to_read || (more_to_write && m_writing.empty());
  std::array<pollfd, 3> polled = {pollfd{m_wake.get(), POLLIN, 0}, pollfd{m_stream->read_fd(), POLLIN, 0},
                                  pollfd{m_writing.empty() ? -1 : m_stream->write_fd(), POLLOUT, 0}};
  ::poll(polled.data(), polled.size(), at_once ? 0 : static_cast<int>(at_most.count()));
  if (polled[0].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(m_wake.get(), &count, sizeof count);
  }
  m_more_to_read = m_more_to_read || polled[1].revents != 0;
  // Bounded, because an agent that sends without a pause must not delay this thread beyond its deadline.
  for (int round = 0; m_more_to_read && round < k_reads_per_turn; ++round) {
    const auto more = read_some();
    if (!more) {
      return fail(more.error());
    }
    m_more_to_read = *more;
  }
  return exchanged;
}

/// Wakes a waiting thread, which takes the turn.
void Connection::pass_turn() {
  if (m_turn_taken) {
    return;
  }
  for (auto& [id, mailbox] : m_mailboxes) {
    if (!mailbox.answer) {
      mailbox.changed.notify_all();
      return;
    }
  }
}

/// Returns whether there may be more to read.
Result<bool> Connection::read_some() {
  std::array<char, 64 * 1024> buffer;
  const auto got = m_stream->read(buffer);
  if (!got) {
    return fail(got.error());
  }
  if (*got == 0) {
    return false;
  }
  m_reader.feed({buffer.data(), *got});
  while (true) {
    auto frame = m_reader.next();
    if (!frame) {
      return fail(frame.error());
    }
    if (!*frame) {
      return true;
    }
    if (auto delivered = deliver(std::move(**frame)); !delivered) {
      return fail(delivered.error());
    }
  }
}

Result<Connection::Exchanged> Connection::write_some() {
  const std::size_t before = m_written;
  while (m_written < m_writing.size()) {
    const auto taken = m_stream->write(std::string_view(m_writing).substr(m_written));
    if (!taken) {
      return fail(taken.error());
    }
    if (*taken == 0) {
      return Exchanged{m_written > before};
    }
    m_written += *taken;
  }
  m_writing.clear();
  m_written = 0;
  return Exchanged{};
}

Result<void> Connection::deliver(wire::Frame frame) {
  const auto id = wire::id_in(frame.head);
  if (!id) {
    return fail(ErrorCode::protocol_violation, "The agent sent a frame without a request id");
  }
  MutexLock lock(m_mutex);
  m_liveness.note_received(Clock::now());
  if (*id >= m_next_id || *id == 0) {
    return fail(ErrorCode::protocol_violation, "The agent answered an unknown request");
  }
  // Pongs, and answers to calls that gave up, are dropped.
  if (const auto mailbox = m_mailboxes.find(*id); mailbox != m_mailboxes.end()) {
    mailbox->second.answer = answer_of(std::move(frame));
    mailbox->second.changed.notify_all();
  } else if (auto handler = m_handlers.extract(*id)) {
    lock.unlock();
    handler.mapped()(answer_of(std::move(frame)));
  }
  return {};
}

void Connection::ping_if_due() {
  const auto now = Clock::now();
  if (m_liveness.is_ping_due(now, !m_mailboxes.empty()) && !m_broken) {
    const std::uint64_t id = m_next_id++;
    m_queue.push(id, encode(wire::PingRequest{}, id));
    m_liveness.note_ping(now);
  }
}

void Connection::break_off(const Error& error) {
  m_broken = error;
  m_alive = false;
  for (auto& [id, mailbox] : m_mailboxes) {
    if (!mailbox.answer) {
      mailbox.answer = m_queue.remove(id) ? fail(error) : fail_unknown(error);
      mailbox.changed.notify_all();
    }
  }
}

}  // namespace dockbridge::sandbox
