#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace dockbridge::mcp {

/// Cuts a stream into lines of bounded length. A line beyond the bound is skipped to its end and reported once.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line) : m_max_line(max_line) {}

  void feed(std::string_view bytes, const std::function<void(std::string_view line)>& on_line,
            const std::function<void()>& on_too_long) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      if (!m_skipping && m_line.size() + part.size() > m_max_line) {
        m_skipping = true;
        m_line.clear();
        m_line.shrink_to_fit();
        on_too_long();
      }
      if (!m_skipping) {
        m_line.append(part);
      }
      if (end == std::string_view::npos) {
        return;
      }
      if (!m_skipping && m_line.find_first_not_of(" \t\r") != std::string::npos) {
        on_line(m_line);
      }
      m_skipping = false;
      m_line.clear();
      if (m_line.capacity() > k_max_kept_bytes) {
        m_line.shrink_to_fit();
      }
      bytes.remove_prefix(end + 1);
    }
  }

 private:
  /// Room for a line that is kept for the next one.
  static constexpr std::size_t k_max_kept_bytes = 256UL * 1024;

  std::size_t m_max_line;
  std::string m_line;
  bool m_skipping = false;
};

}  // namespace dockbridge::mcp
