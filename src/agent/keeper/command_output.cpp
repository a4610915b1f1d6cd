#include "agent/keeper/command_output.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "agent/keeper/streams.hpp"
#include "agent/record.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_output_chunk_bytes = 32 * 1024;
/// Exceeds what a pipe can hold: all that a command wrote before its end is in its pipe when it is reaped.
constexpr std::size_t k_drain_bytes = 1024 * 1024;

}  // namespace

CommandOutput::CommandOutput(int directory_fd, const std::string& process, SpoolCaps caps, ActivityMonitor& activity)
    : m_activity(activity),
      m_out(directory_fd, out_name(process), caps),
      m_err(directory_fd, err_name(process), caps) {}

void CommandOutput::open(Fd out, Fd err, Terminal* terminal) {
  m_out_pipe = std::move(out);
  m_err_pipe = std::move(err);
  m_terminal = terminal;
}

int CommandOutput::out_fd() const {
  return m_terminal != nullptr && m_terminal->has_backlog() ? -1 : m_out_pipe.get();
}

/// One read empties a pipe, or fills the buffer. Another read would miss what was written to stderr in between.
void CommandOutput::read_out(Clock::time_point now) {
  read(m_out_pipe, m_out, m_terminal != nullptr ? k_output_chunk_bytes : 1, now);
}

void CommandOutput::read_err(Clock::time_point now) {
  read(m_err_pipe, m_err, 1, now);
}

void CommandOutput::drain(Clock::time_point now) {
  read(m_out_pipe, m_out, k_drain_bytes, now);
  read(m_err_pipe, m_err, k_drain_bytes, now);
}

bool CommandOutput::has_unread() const {
  return (m_terminal == nullptr || !m_terminal->has_backlog()) &&
         (is_readable(m_out_pipe.get()) || is_readable(m_err_pipe.get()));
}

void CommandOutput::trim(std::uint64_t bytes) {
  m_out.trim(bytes / 2);
  m_err.trim(bytes / 2);
}

void CommandOutput::read(Fd& pipe, SpoolWriter& spool, std::size_t enough, Clock::time_point now) {
  static std::array<char, k_output_chunk_bytes> buffer;
  for (std::size_t done = 0; pipe && done < enough;) {
    const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
    if (got > 0) {
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      spool.append(bytes);
      if (&spool == &m_err) {
        m_err.note_order(m_out.total());
      }
      if (m_terminal != nullptr) {
        m_terminal->show(bytes);
      }
      m_activity.note_output(bytes, now);
      done += static_cast<std::size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      pipe.reset();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

}  // namespace dockbridge::agent
