#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string_view>

#include "mcp/tool.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

/// Outcome of a call, stored with its key after the result was dropped.
class OnceOutcome {
 public:
  OnceOutcome() = default;
  explicit OnceOutcome(const ToolResult& result);

  [[nodiscard]] bool is_error() const { return m_is_error; }
  /// The error's code, or the outcome that the tool reported; may be empty.
  [[nodiscard]] std::string_view text() const { return m_text.data(); }

 private:
  bool m_is_error = false;
  std::array<char, 59> m_text{};  // NUL-terminated
};

/// The finished keys of one owner: digests and outcomes for the lifetime of a key, and the most recent results up to a
/// limit in bytes. A key takes about 150 bytes. Not thread-safe.
class OnceKeys {
 public:
  using Digest = std::array<char, 16>;
  struct Kept {
    Digest call{};  ///< digest of the tool and its arguments
    std::uint32_t finished_s = 0;
    OnceOutcome outcome{};
  };

  explicit OnceKeys(std::size_t max_result_bytes) : m_max_result_bytes(max_result_bytes) {}

  /// Drops keys that were finished before `oldest_s`.
  void expire(std::uint32_t oldest_s);
  /// Adds a new key. A result that exceeds the limit is not stored; older results are dropped to make room.
  void put(const Digest& key, const Kept& kept, std::shared_ptr<const ToolResult> result);
  /// nullptr if the key is unknown.
  [[nodiscard]] const Kept* find(const Digest& key) const;
  /// nullptr if the result was dropped.
  [[nodiscard]] std::shared_ptr<const ToolResult> result(const Digest& key) const;
  void drop_oldest_result();

  [[nodiscard]] std::size_t size() const { return m_keys.size(); }
  [[nodiscard]] std::size_t result_bytes() const { return m_result_bytes; }

 private:
  struct Body {
    std::shared_ptr<const ToolResult> result;
    std::size_t bytes;
  };
  using Keys = std::map<Digest, Kept>;  // not hashed: clients choose keys and could provoke collisions

  const std::size_t m_max_result_bytes;
  std::size_t m_result_bytes = 0;
  Keys m_keys;
  std::deque<Keys::iterator> m_order;  // oldest first
  std::map<Digest, Body> m_results;
  std::deque<Digest> m_result_order;  // oldest first
};

}  // namespace dockbridge::mcp
