#include "agent/files/search/literal_scan.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_block_bytes = 32;

/// Bytes of source code and English, the most common first. All other bytes are rarer.
constexpr std::string_view k_common_bytes =
    " etsainor_\nclpdmf/u,yhgb:.(R)1T;>E<OSvv-*=NAI02wxPC3#DL4BMUk}{68\"57&F9HG|\tzqV'W!";

std::size_t rarity(char byte) {
  return std::min(k_common_bytes.find(byte), k_common_bytes.size());
}

bool is_lower(char byte) {
  return byte >= 'a' && byte <= 'z';
}

char to_lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte | 0x20) : byte;
}

bool has_wide_blocks() {
#ifdef __x86_64__
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
#else
  return false;
#endif
}

}  // namespace

LiteralScan::LiteralScan(std::string literal, bool ignore_case)
    : m_literal(std::move(literal)), m_ignore_case(ignore_case) {
  if (m_ignore_case) {
    std::transform(m_literal.begin(), m_literal.end(), m_literal.begin(), to_lower);
  }
  const auto probe = [&](std::size_t at) {
    const char byte = m_literal[at];
    const bool both_cases = m_ignore_case && is_lower(byte);
    return Probe{at, static_cast<unsigned char>(byte), static_cast<unsigned char>(both_cases ? 0x20 : 0)};
  };
  std::size_t first = 0;
  for (std::size_t i = 1; i < m_literal.size(); ++i) {
    if (rarity(m_literal[i]) > rarity(m_literal[first])) {
      first = i;
    }
  }
  std::size_t second = first == 0 ? m_literal.size() - 1 : 0;
  for (std::size_t i = 0; i < m_literal.size(); ++i) {
    if (i != first && rarity(m_literal[i]) > rarity(m_literal[second])) {
      second = i;
    }
  }
  m_first = probe(first);
  m_second = probe(second);
}

std::size_t LiteralScan::find(std::string_view text, std::size_t from) const {
  if (from >= text.size() || text.size() - from < m_literal.size()) {
    return k_none;
  }
  return has_wide_blocks() ? find_in_blocks(text, from) : find_by_byte(text, from);
}

bool LiteralScan::equals(const char* text) const {
  if (!m_ignore_case) {
    return std::memcmp(text, m_literal.data(), m_literal.size()) == 0;
  }
  return std::equal(m_literal.begin(), m_literal.end(), text, [](char a, char b) { return a == to_lower(b); });
}

#ifdef __x86_64__
__attribute__((target("avx2"))) std::size_t LiteralScan::find_in_blocks(std::string_view text, std::size_t from) const {
  const __m256i first_byte = _mm256_set1_epi8(static_cast<char>(m_first.byte));
  const __m256i first_mask = _mm256_set1_epi8(static_cast<char>(m_first.case_mask));
  const __m256i second_byte = _mm256_set1_epi8(static_cast<char>(m_second.byte));
  const __m256i second_mask = _mm256_set1_epi8(static_cast<char>(m_second.case_mask));
  const std::size_t beyond = std::max(m_first.at, m_second.at) + k_block_bytes;
  const std::size_t last = text.size() - m_literal.size();  // the last possible position
  const char* const data = text.data();
  const auto block = [data](std::size_t offset) { return reinterpret_cast<const __m256i*>(data + offset); };
  std::size_t at = from;
  for (; at + beyond <= text.size(); at += k_block_bytes) {
    const __m256i first = _mm256_or_si256(_mm256_loadu_si256(block(at + m_first.at)), first_mask);
    const __m256i second = _mm256_or_si256(_mm256_loadu_si256(block(at + m_second.at)), second_mask);
    const __m256i both = _mm256_and_si256(_mm256_cmpeq_epi8(first, first_byte), _mm256_cmpeq_epi8(second, second_byte));
    auto hits = static_cast<unsigned>(_mm256_movemask_epi8(both));
    for (; hits != 0; hits &= hits - 1) {
      const std::size_t candidate = at + static_cast<std::size_t>(__builtin_ctz(hits));
      if (candidate > last) {
        return k_none;
      }
      if (equals(data + candidate)) {
        return candidate;
      }
    }
  }
  return at > last ? k_none : find_by_byte(text, at);
}
#else
std::size_t LiteralScan::find_in_blocks(std::string_view text, std::size_t from) const {
  return find_by_byte(text, from);
}
#endif

std::size_t LiteralScan::find_by_byte(std::string_view text, std::size_t from) const {
  const std::size_t last = text.size() - m_literal.size();
  for (std::size_t at = from; at <= last; ++at) {
    if (m_first.case_mask == 0) {
      const void* hit = std::memchr(text.data() + at + m_first.at, m_first.byte, last - at + 1);
      if (hit == nullptr) {
        return k_none;
      }
      at = static_cast<std::size_t>(static_cast<const char*>(hit) - text.data()) - m_first.at;
    } else if ((static_cast<unsigned char>(text[at + m_first.at]) | m_first.case_mask) != m_first.byte) {
      continue;
    }
    if (equals(text.data() + at)) {
      return at;
    }
  }
  return k_none;
}

}  // namespace dockbridge::agent
