#pragma once

#include <array>
#include <deque>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "agent/session/event_loop.hpp"
#include "agent/session/replies.hpp"
#include "util/fd.hpp"
#include "wire/frame.hpp"
#include "wire/route.hpp"

namespace dockbridge::agent {

/// A request as it was received.
struct HostRequest {
  wire::Route route;
  wire::RawFrame frame;
};

/// The session's stream to the host, on stdin and stdout. Queues requests, drops queued requests that the host cancels,
/// and pauses while too many replies wait to be sent. Does not interpret other requests.
class HostStream : public Replies {
 public:
  using Handler = std::function<void(HostRequest request)>;

  HostStream(EventLoop& loop, Handler handle);

  /// Sends the greeting and starts to receive requests.
  void open(const nlohmann::json& greeting);
  void close() { m_is_open = false; }
  /// False after `close`, after the stream has ended, and after a violation of the protocol.
  [[nodiscard]] bool is_open() const { return m_is_open; }
  /// Continues on the direct line. Closes the stream if replies still wait for the engine's stream.
  void switch_to(const Fd& line);
  /// Closes the stream if the host has been silent for too long.
  void close_if_silent(Clock::time_point now);
  /// Time at which the silence of the host is too long.
  [[nodiscard]] Clock::time_point silence_deadline() const;

  void forward(std::string_view frame) override;

 private:
  void send_frame(const nlohmann::json& head, std::string_view body) override;
  void read_requests();
  Result<void> queue_requests();
  void handle_requests();
  void flush();

  EventLoop& m_loop;
  Handler m_handle;
  wire::FrameReader m_reader{wire::k_max_body_to_agent};
  std::deque<HostRequest> m_requests;
  std::string m_outgoing;
  std::array<Fd, 2> m_engine_streams;  ///< the exec's stdin and stdout, once the direct line is in use
  bool m_is_stdout_watched = false;
  bool m_is_open = true;
  Clock::time_point m_last_received;
};

}  // namespace dockbridge::agent
