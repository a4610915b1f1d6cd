#include "agent/keeper/command_input.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/control/packets.hpp"
#include "agent/control/screen_packets.hpp"
#include "agent/keeper/streams.hpp"

namespace dockbridge::agent {

namespace {

constexpr char k_end_of_input_key = 4;
/// Maximum length of the encoded keys of one packet.
constexpr std::size_t k_max_keys_bytes = k_max_control_payload;
/// Packets of keys that the screen process has not encoded yet.
constexpr std::size_t k_max_pending_presses = 64;

}  // namespace

std::size_t count_keys(std::string_view names) {
  return names.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(names.begin(), names.end(), ' '));
}

void CommandInput::open(Fd pipe, Terminal* terminal) {
  m_pipe = std::move(pipe);
  m_terminal = terminal;
}

void CommandInput::write_queue() {
  const ssize_t written = ::write(m_pipe.get(), m_queue.data(), m_queue.size());
  if (written > 0) {
    m_queue.erase(0, static_cast<std::size_t>(written));
  } else if (written < 0 && errno != EAGAIN && errno != EINTR) {
    m_queue.clear();
    m_pipe.reset();
  }
  if (m_queue.empty() && m_ends) {
    m_pipe.reset();
  }
}

bool CommandInput::has_unread() const {
  if (!m_pipe || !m_queue.empty() || (m_terminal != nullptr && m_terminal->presses().count() > 0)) {
    return true;
  }
  int count = 0;
  return m_terminal != nullptr ? is_readable(m_terminal->command_fd())
                               : ::ioctl(m_pipe.get(), FIONREAD, &count) == 0 && count > 0;
}

InputSource CommandInput::source() const {
  return input_source(m_terminal != nullptr ? m_terminal->command_fd() : m_pipe.get());
}

std::size_t CommandInput::room() const {
  const std::size_t waiting = m_queue.size() + (m_terminal != nullptr ? m_terminal->presses().bytes() : 0);
  return k_max_pending_input - std::min(k_max_pending_input, waiting);
}

Accepted CommandInput::write(std::string_view bytes, std::uint32_t how, Clock::time_point now) {
  if (!is_open()) {
    return {};
  }
  const std::size_t count = std::min(bytes.size(), room());
  const bool then_end = (how & k_then_end) != 0 && count == bytes.size();
  const bool as_paste = (how & k_as_paste) != 0 && count > 0 && m_terminal != nullptr && m_terminal->has_screen() &&
                        m_terminal->presses().count() < k_max_pending_presses;
  if (as_paste) {
    m_terminal->press(k_paste_begins);
  }
  type(std::string(bytes.substr(0, count)));
  if (as_paste) {
    m_terminal->press(k_paste_ends);
  }
  if (then_end && m_terminal != nullptr) {
    // Behind an unfinished line, the first one only submits that line.
    const bool in_line = !bytes.empty() && bytes.back() != '\n' && bytes.back() != '\r';
    type(std::string(in_line ? 2 : 1, k_end_of_input_key));
  } else {
    m_ends = then_end;
  }
  m_activity.note_activity(now);
  m_activity.note_input(bytes.substr(0, count));
  write_queue();
  return {count, then_end};
}

std::size_t CommandInput::press(std::string_view names, Clock::time_point now) {
  const bool is_possible = m_terminal != nullptr && m_terminal->has_screen() && m_pipe && !names.empty() &&
                           room() > k_max_keys_bytes && m_terminal->presses().count() < k_max_pending_presses;
  if (!is_possible) {
    return 0;
  }
  m_terminal->press(names);
  m_activity.note_activity(now);
  m_activity.note_input("");
  return count_keys(names);
}

void CommandInput::write_from_screen(std::string_view bytes) {
  if (!m_pipe || bytes.empty()) {
    return;
  }
  if (bytes.find('\r') != std::string_view::npos) {
    m_activity.note_input(bytes);  // replies of the terminal have no line break
  }
  queue(bytes);
  write_queue();
}

void CommandInput::type(std::string text) {
  queue(m_terminal != nullptr ? m_terminal->presses().type(std::move(text)) : std::move(text));
}

/// A key such as ctrl-c takes effect at once and drops what was typed before it, as the kernel does. The kernel itself
/// would not receive it before the program has read enough of the earlier input.
void CommandInput::queue(std::string_view bytes) {
  const std::size_t signal = m_terminal != nullptr ? m_terminal->find_signal_key(bytes) : std::string_view::npos;
  if (signal != std::string_view::npos) {
    m_terminal->drop_input();
    m_queue.clear();
    bytes.remove_prefix(signal);
  }
  m_queue += bytes;
}

}  // namespace dockbridge::agent
