#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/keeper/keeper.hpp"
#include "agent/keeper/process_tree.hpp"
#include "agent/keeper/usage.hpp"
#include "agent/screen/service.hpp"

namespace dockbridge::agent {

namespace {

constexpr char k_end_of_input_key = 4;
/// What the keys of one packet may come to.
constexpr std::size_t k_keys_room = k_max_control_payload;
/// Packets of keys, while the emulator is behind.
constexpr std::size_t k_most_keys_under_way = 64;

void accept(int socket, std::size_t count, std::string_view payload = {}) {
  send_control(socket, static_cast<std::uint8_t>(Answer::accepted), static_cast<std::uint32_t>(count), payload);
}

std::size_t count_keys(std::string_view names) {
  return names.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(names.begin(), names.end(), ' '));
}

/// How many bytes, keys or signals an order brings; none if it is not one that can be obeyed once.
std::optional<std::size_t> count_in(Order order, std::string_view payload) {
  if (order == Order::none) {
    return 0;
  }
  if (order == Order::input) {
    return payload.size();
  }
  if (order == Order::keys) {
    return count_keys(payload);
  }
  return order == Order::signal ? std::optional<std::size_t>(1) : std::nullopt;
}

}  // namespace

void Keeper::accept_link() {
  Fd socket(::accept4(m_surroundings.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    m_links.push_back(Link{std::move(socket), false, false, false, 0, false, {}});
  }
}

/// False for a peer that breaks the protocol, or means another process.
bool Keeper::obey(Link& link, const ControlPacket& packet) {
  if (!link.attached) {
    link.attached =
        packet.header.type == static_cast<std::uint8_t>(Order::attach) && packet.payload == m_assignment.process;
    return link.attached;
  }
  switch (static_cast<Order>(packet.header.type)) {
    case Order::none:
    case Order::start:
    case Order::attach:
      return false;
    case Order::query:
      look((packet.header.value & k_heed_starvation) != 0);
      link.sent = state();
      send_state(link.socket.get(), link.sent);  // who does not read asks again
      return true;
    case Order::watch_growth:
      link.watches_growth = true;
      return true;
    case Order::watch_input:
      link.watches_input = packet.header.value;
      if (link.watches_input != 0) {
        m_look_interval = is_watched_for(k_watch_answer) ? k_first_answer_look : m_look_interval;
        look();
      }
      return true;
    case Order::input:
      accept(link.socket.get(), feed(packet.payload, packet.header.value).count);
      return true;
    case Order::keys:
      accept(link.socket.get(), press_keys(packet.payload));
      return true;
    case Order::once:
      return obey_once(link, packet);
    case Order::screen:
      link.awaits_screen = true;
      if (m_terminal && m_terminal->has_screen()) {
        m_terminal->store();
      } else {
        answer_screen_requests();
      }
      return true;
    case Order::resize:
      if (m_terminal) {
        m_terminal->resize(unpacked_size(packet.header.value));
      }
      return true;
    case Order::trim:
      m_out.trim(packet.header.value / 2);
      m_err.trim(packet.header.value / 2);
      return true;
    case Order::signal:
      signal_descendants(static_cast<int>(packet.header.value));
      return true;
    case Order::end: {
      const auto cause = packet.payload.empty() ? 0U : static_cast<unsigned char>(packet.payload.front());
      if (cause > static_cast<unsigned>(wire::Cause::terminated)) {
        return false;
      }
      end_tree(static_cast<wire::Cause>(cause), milliseconds(packet.header.value));
      return true;
    }
  }
  return false;
}

Keeper::Given Keeper::feed(std::string_view bytes, std::uint32_t how) {
  if (!m_stdin_pipe || m_stdin_ends) {
    return {};
  }
  const std::size_t accepted = std::min(bytes.size(), room_for_input());
  const bool then_end = (how & k_then_end) != 0 && accepted == bytes.size();
  const bool as_paste = (how & k_as_paste) != 0 && accepted > 0 && m_terminal && m_terminal->has_screen() &&
                        m_terminal->keys_under_way() < k_most_keys_under_way;
  if (as_paste) {
    m_terminal->press(k_paste_begins);
  }
  type(std::string(bytes.substr(0, accepted)));
  if (as_paste) {
    m_terminal->press(k_paste_ends);
  }
  if (then_end && m_terminal) {
    // The first one only hands over a line that was not finished.
    const bool in_line = !bytes.empty() && bytes.back() != '\n' && bytes.back() != '\r';
    type(std::string(in_line ? 2 : 1, k_end_of_input_key));
  } else {
    m_stdin_ends = then_end;
  }
  note_activity();
  m_output_end.note_input(bytes.substr(0, accepted));
  write_input();
  return {accepted, then_end};
}

/// On a terminal, behind the keys that were pressed before.
void Keeper::type(std::string text) {
  queue_input(m_terminal ? m_terminal->type(std::move(text)) : std::move(text));
}

/// A key such as ctrl-c takes effect at once and drops what was typed before it, as the kernel does. The kernel itself
/// would not see it before the program has read enough of that.
void Keeper::queue_input(std::string_view bytes) {
  const std::size_t signal = m_terminal ? m_terminal->find_signal_key(bytes) : std::string_view::npos;
  if (signal != std::string_view::npos) {
    m_terminal->drop_input();
    m_pending_input.clear();
    bytes.remove_prefix(signal);
  }
  m_pending_input += bytes;
}

/// Keys are not counted one by one: the host knows them all, and there is room for a whole packet or for none.
std::size_t Keeper::press_keys(std::string_view names) {
  const bool taken = m_terminal && m_terminal->has_screen() && m_stdin_pipe && !names.empty() &&
                     room_for_input() > k_keys_room && m_terminal->keys_under_way() < k_most_keys_under_way;
  if (!taken) {
    return 0;
  }
  m_terminal->press(names);
  note_activity();
  m_output_end.note_input("");
  return count_keys(names);
}

Keeper::Given Keeper::give(Order order, std::uint32_t value, std::string_view payload) {
  if (order == Order::input) {
    return feed(payload, value);
  }
  if (order == Order::keys) {
    return {press_keys(payload), false};
  }
  signal_descendants(static_cast<int>(value));
  return {1, false};
}

/// False for a peer that breaks the protocol. What has been taken under the key is not given again, and a command that
/// has ended is given nothing.
bool Keeper::obey_once(const Link& link, const ControlPacket& packet) {
  OnceHeader step;
  if (packet.payload.size() < sizeof step) {
    return false;
  }
  std::memcpy(&step, packet.payload.data(), sizeof step);
  const auto payload = std::string_view(packet.payload).substr(sizeof step);
  const auto order = static_cast<Order>(step.order);
  const auto sent = count_in(order, payload);
  if (!sent) {
    return false;
  }
  const bool then_end = order == Order::input && (packet.header.value & k_then_end) != 0;
  const auto found = m_taken.find(step, *sent + (then_end ? 1 : 0));
  Given given{std::min<std::size_t>(found.units, *sent), false};
  if (found.before == Before::no && order != Order::none && m_phase == wire::Phase::running) {
    given = give(order, packet.header.value, payload);
    m_taken.add(step, given.count + (given.then_end ? 1 : 0));
  }
  const OnceAnswer answer = m_taken.answer(step, found.before);
  accept(link.socket.get(), given.count, {reinterpret_cast<const char*>(&answer), sizeof answer});
  return true;
}

void Keeper::hear_screen() {
  Terminal& terminal = *m_terminal;
  const auto [typed, stored] = terminal.receive(room_for_input());
  if (m_stdin_pipe && !typed.empty()) {
    if (typed.find('\r') != std::string::npos) {
      m_output_end.note_input(typed);  // answers of the terminal itself have no line break
    }
    queue_input(typed);
    write_input();
  }
  if (stored) {
    answer_screen_requests();
  }
}

void Keeper::answer_screen_requests() {
  for (Link& link : m_links) {
    if (std::exchange(link.awaits_screen, false)) {
      send_control(link.socket.get(), static_cast<std::uint8_t>(Answer::screen), 0);
    }
  }
}

void Keeper::write_input() {
  const ssize_t written = ::write(m_stdin_pipe.get(), m_pending_input.data(), m_pending_input.size());
  if (written > 0) {
    m_pending_input.erase(0, static_cast<std::size_t>(written));
  } else if (written < 0 && errno != EAGAIN && errno != EINTR) {
    m_pending_input.clear();
    m_stdin_pipe.reset();
  }
  if (m_pending_input.empty() && m_stdin_ends) {
    m_stdin_pipe.reset();
  }
}

std::size_t Keeper::room_for_input() const {
  const std::size_t waiting = m_pending_input.size() + (m_terminal ? m_terminal->waiting_bytes() : 0);
  return k_max_pending_input - std::min(k_max_pending_input, waiting);
}

StatePacket Keeper::state() const {
  StatePacket packet;
  packet.header.type = static_cast<std::uint8_t>(Answer::state);
  packet.phase = static_cast<std::uint8_t>(m_phase);
  packet.end = static_cast<std::uint8_t>(m_status.end);
  packet.cause = static_cast<std::uint8_t>(m_status.cause);
  packet.stdin_open = m_stdin_pipe && !m_stdin_ends ? 1 : 0;
  packet.end_code = m_status.end_code;
  packet.pid = m_pid;
  packet.ended_at_ms = m_status.ended.unix_ms;
  packet.ended_uptime_ms = m_status.ended.uptime_ms;
  packet.out_total = m_out.total();
  packet.err_total = m_err.total();
  packet.waits_for_input = static_cast<std::uint8_t>(m_waits_for_input);
  packet.paused = m_paused ? 1 : 0;
  packet.terminal = m_terminal ? 1 : 0;
  packet.answered = m_has_answered ? 1 : 0;
  packet.children = m_children;
  packet.used = together(m_reaped, m_living);
  const auto idle = std::chrono::duration_cast<milliseconds>(Clock::now() - m_last_activity);
  packet.idle_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, idle.count()));
  packet.starved_ms = static_cast<std::uint64_t>(m_starvation.so_far().count());
  return packet;
}

void Keeper::tell_watchers() {
  StatePacket now = state();
  for (Link& link : m_links) {
    const bool grew = now.out_total != link.sent.out_total || now.err_total != link.sent.err_total;
    const std::uint32_t news =
        (m_waits_for_input == wire::WaitsForInput::yes ? k_watch_input : 0) | (m_has_answered ? k_watch_answer : 0);
    const bool asks = (link.watches_input & news) != 0;
    const bool due = link.attached && (now.phase != link.sent.phase || (link.watches_growth && grew) || asks);
    const bool free = link.first && m_phase == wire::Phase::closed && !m_end_unrecorded;
    now.header.value = free ? k_keeper_is_free : 0;
    if (due && send_state(link.socket.get(), now)) {
      link.sent = now;
      link.watches_growth = false;
      link.watches_input &= ~news;
    }
  }
}

}  // namespace dockbridge::agent
