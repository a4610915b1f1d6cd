#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace dockbridge::sandbox {

/// Frames to the agent of which no byte is sent yet, so each of them can still be removed. Does no I/O. Not
/// thread-safe.
class OutgoingQueue {
 public:
  void push(std::uint64_t id, std::string bytes);
  /// A cancellation precedes the requests that wait, so that it reaches the agent soon after what it cancels.
  void push_cancellation(std::uint64_t id, std::string bytes);
  /// False if the frame is not in the queue any more: a part of it may have been sent.
  bool remove(std::uint64_t id);
  /// Moves frames to `writing`, of which `written` bytes are sent. Small frames are written together. Cancellations
  /// join a frame that is being written, so that both arrive together.
  void move_to(std::string& writing, std::size_t written);

  [[nodiscard]] bool empty() const { return m_frames.empty(); }
  [[nodiscard]] std::size_t bytes() const { return m_bytes; }

 private:
  struct Frame {
    std::uint64_t id = 0;
    bool is_cancellation = false;
    std::string bytes;
  };

  std::deque<Frame> m_frames;
  std::size_t m_bytes = 0;  // of all frames
};

}  // namespace dockbridge::sandbox
