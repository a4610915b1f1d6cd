#pragma once

#include <deque>
#include <numeric>
#include <string>
#include <utility>

namespace dockbridge::agent {

/// Keys that the screen process has not encoded yet, and the text that was typed behind them. Keeps both in order. The
/// caller bounds the number of presses and the text.
class PendingPresses {
 public:
  void add() { m_texts.emplace_back(); }
  /// Returns the text if no press is pending. Otherwise the text waits for the latest press.
  std::string type(std::string text) {
    if (m_texts.empty()) {
      return text;
    }
    m_texts.back() += text;
    return {};
  }
  /// Ends the oldest press, if there is one. Returns the text that waited for it.
  std::string take_first() {
    std::string text;
    if (!m_texts.empty()) {
      text = std::move(m_texts.front());
      m_texts.pop_front();
    }
    return text;
  }
  /// Ends all presses. Returns all text.
  std::string take_all() {
    const auto texts = std::exchange(m_texts, {});
    return std::accumulate(texts.begin(), texts.end(), std::string());
  }

  [[nodiscard]] std::size_t count() const { return m_texts.size(); }
  /// Size of the waiting text.
  [[nodiscard]] std::size_t bytes() const {
    return std::accumulate(m_texts.begin(), m_texts.end(), std::size_t{0},
                           [](std::size_t sum, const std::string& text) { return sum + text.size(); });
  }

 private:
  std::deque<std::string> m_texts;  // for each press, the text that was typed after it
};

}  // namespace dockbridge::agent
