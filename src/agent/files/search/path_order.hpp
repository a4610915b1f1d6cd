#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace dockbridge::agent {

/// Orders paths by the bytes of their components, so everything beneath a directory follows it immediately.
inline bool path_less(std::string_view a, std::string_view b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (in_a == a.end() || in_b == b.end()) {
    return in_a == a.end() && in_b != b.end();
  }
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return rank(*in_a) < rank(*in_b);
}

/// Keeps the first of many items in bounded memory. Items are added in any order. `T` has `operator<`, a total order,
/// and `bytes()`. Items after the first dropped one are unknown: they need another round that begins `after` the last
/// known one.
template <typename T>
class FirstItems {
 public:
  /// At most `most` items are wanted.
  FirstItems(std::size_t most, std::size_t most_bytes, const T* after = nullptr)
      : m_most(std::max<std::size_t>(most, 1)), m_most_bytes(most_bytes), m_after(after) {}

  void add(T item) {
    if ((m_after != nullptr && !(*m_after < item)) || (m_limit && *m_limit < item)) {
      return;
    }
    m_bytes += item.bytes();
    m_items.push_back(std::move(item));
    if (m_items.size() >= 2 * m_most || m_bytes > m_most_bytes) {
      trim();
    }
  }

  /// Adds the items of another thread.
  void merge(FirstItems&& other) {
    if (other.m_limit && (!m_limit || *other.m_limit < *m_limit)) {
      m_limit = std::move(other.m_limit);
    }
    for (T& item : other.m_items) {
      add(std::move(item));
    }
  }

  /// The known items in order. No item is missing between them.
  std::vector<T> sorted() {
    std::sort(m_items.begin(), m_items.end());
    while (m_limit && !m_items.empty() && *m_limit < m_items.back()) {
      m_items.pop_back();
    }
    return std::move(m_items);
  }

  /// True if there are more items than the known ones.
  [[nodiscard]] bool has_limit() const { return m_limit.has_value(); }

 private:
  void trim() {
    std::sort(m_items.begin(), m_items.end());
    // Half of the bytes, so the next trim is not due soon.
    std::size_t kept = 0;
    for (m_bytes = 0; kept < std::min(m_items.size(), m_most); ++kept) {
      const std::size_t bytes = m_items[kept].bytes();
      if (kept > 0 && m_bytes + bytes > m_most_bytes / 2) {
        break;
      }
      m_bytes += bytes;
    }
    if (kept < m_items.size()) {
      m_items.resize(kept, m_items.back());
      if (!m_limit || m_items.back() < *m_limit) {
        m_limit = m_items.back();
      }
    }
  }

  std::size_t m_most;
  std::size_t m_most_bytes;
  const T* m_after;
  std::size_t m_bytes = 0;
  std::vector<T> m_items;
  std::optional<T> m_limit;  // nothing after this is kept
};

}  // namespace dockbridge::agent
