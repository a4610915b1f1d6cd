#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "error/error.hpp"
#include "util/clock.hpp"

namespace dockbridge::wire {

// The stream between host and agent, specified in docs/agent-protocol.md.

/// The first bytes that a session sends. A stream that starts otherwise has the text of a failure to start.
inline constexpr std::string_view k_magic = "dockbridge-agent/1\n";
inline constexpr int k_protocol_version = 1;

inline constexpr std::size_t k_max_head_bytes = 64 * 1024;
inline constexpr int k_max_head_depth = 8;
inline constexpr std::size_t k_max_body_to_agent = 20 * 1024 * 1024;
inline constexpr std::size_t k_max_body_to_host = 1024 * 1024;
/// Largest output of a process in one answer.
inline constexpr std::size_t k_max_read_bytes = 256 * 1024;

inline constexpr milliseconds k_idle_ping_interval{15'000};
inline constexpr milliseconds k_session_silence_limit{60'000};

struct Frame {
  nlohmann::json head;
  std::string body;
};

/// Encodes a frame: two little-endian 32-bit lengths, the head as JSON text, the body unchanged.
std::string encode(const nlohmann::json& head, std::string_view body = {});
/// Appends an encoded frame to `out`.
void append_frame(std::string& out, const nlohmann::json& head, std::string_view body = {});

/// Parses a JSON object from an untrusted peer. The depth is checked during parsing.
Result<nlohmann::json> parse_bounded(std::string_view text, int max_depth);

/// A received frame that is forwarded without being decoded.
class RawFrame {
 public:
  RawFrame(std::string bytes, std::size_t head_bytes) : m_bytes(std::move(bytes)), m_head_bytes(head_bytes) {}

  [[nodiscard]] const std::string& bytes() const { return m_bytes; }
  [[nodiscard]] std::string take_bytes() && { return std::move(m_bytes); }
  [[nodiscard]] std::string_view head() const;
  [[nodiscard]] std::string_view body() const;

 private:
  std::string m_bytes;
  std::size_t m_head_bytes;
};

/// Splits a byte stream into frames. The peer is not trusted: lengths are checked before memory is allocated.
class FrameReader {
 public:
  explicit FrameReader(std::size_t max_body) : m_max_body(max_body) {}

  void feed(std::string_view bytes) { m_buffer.append(bytes); }
  /// The next frame; nullopt if more bytes are needed. After a protocol violation, every call fails.
  Result<std::optional<Frame>> next();
  /// The next frame without decoding: only its lengths are checked.
  Result<std::optional<RawFrame>> next_raw();

 private:
  struct Extent {
    std::size_t head_bytes = 0;
    std::size_t body_bytes = 0;
  };
  /// The lengths of the next frame; nullopt if more bytes are needed.
  Result<std::optional<Extent>> next_extent();

  std::size_t m_max_body;
  std::string m_buffer;
  std::size_t m_consumed = 0;
};

}  // namespace dockbridge::wire
