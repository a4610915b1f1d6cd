#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Finds a text in bytes, several gigabytes a second: looks for two of its rarest bytes at their distance, and compares
/// only where both are found. Immutable; any thread may use it.
class LiteralScan {
 public:
  static constexpr std::size_t k_none = std::string_view::npos;

  /// `literal` is not empty. With `ignore_case`, ASCII letters match in either case, and only those.
  explicit LiteralScan(std::string literal, bool ignore_case = false);

  /// First position at `from` or later; k_none if there is none.
  [[nodiscard]] std::size_t find(std::string_view text, std::size_t from) const;
  [[nodiscard]] const std::string& literal() const { return m_literal; }

 private:
  struct Probe {
    std::size_t at = 0;           // in the literal
    unsigned char byte = 0;       // at that position
    unsigned char case_mask = 0;  // bits to set in the text's byte before the comparison
  };

  [[nodiscard]] bool equals(const char* text) const;
  [[nodiscard]] std::size_t find_in_blocks(std::string_view text, std::size_t from) const;
  [[nodiscard]] std::size_t find_by_byte(std::string_view text, std::size_t from) const;

  std::string m_literal;  // in lower case if case is ignored
  bool m_ignore_case;
  Probe m_first;   // the rarest byte
  Probe m_second;  // the second rarest; the same in a literal of one byte
};

}  // namespace dockbridge::agent
