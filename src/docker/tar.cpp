#include "docker/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace dockbridge::docker {

namespace {

constexpr std::size_t k_block_bytes = 512;
constexpr std::size_t k_max_extension_bytes = 64 * 1024;

void put(std::string& block, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
}

std::string header_of(const TarEntry& entry) {
  std::string block(k_block_bytes, '\0');
  const bool directory = entry.name.ends_with('/');
  put(block, 0, entry.name);
  put(block, 100, fmt::format("{:07o}", entry.mode));
  put(block, 108, fmt::format("{:07o}", entry.uid));
  put(block, 116, "0000000");
  put(block, 124, fmt::format("{:011o}", entry.content.size()));
  put(block, 136, "00000000000");
  put(block, 148, "        ");
  put(block, 156, directory ? "5" : "0");
  put(block, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  const unsigned sum = std::accumulate(block.begin(), block.end(), 0U,
                                       [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
  put(block, 148, fmt::format("{:06o}", sum) + '\0');
  return block;
}

tl::unexpected<Error> malformed() {
  return fail(ErrorCode::engine_error, "The engine sent a malformed tar archive");
}

std::optional<std::uint64_t> number_in(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// A field of octal digits, which spaces and NULs may surround; or a binary number, marked by its first bit.
std::optional<std::uint64_t> number_field(std::string_view field) {
  if ((static_cast<unsigned char>(field.front()) & 0x80U) != 0) {
    std::uint64_t value = static_cast<unsigned char>(field.front()) & 0x7FU;
    for (const char c : field.substr(1)) {
      if (value >> 56 != 0) {
        return std::nullopt;
      }
      value = (value << 8) | static_cast<unsigned char>(c);
    }
    return value;
  }
  constexpr std::string_view k_padding(" \0", 2);
  const std::size_t begin = field.find_first_not_of(k_padding);
  if (begin == std::string_view::npos) {
    return 0;
  }
  field = field.substr(begin);
  return number_in(field.substr(0, field.find_first_of(k_padding)), 8);
}

std::string_view text_field(std::string_view field) {
  return field.substr(0, field.find('\0'));
}

std::string without_outer_slashes(std::string_view name) {
  const std::size_t begin = name.find_first_not_of('/');
  return begin == std::string_view::npos ? "" : std::string(name.substr(begin, name.find_last_not_of('/') - begin + 1));
}

/// A header that describes the member after it, not a member.
bool is_extension(char type) {
  return std::string_view("xgLK").find(type) != std::string_view::npos;
}

std::uint64_t padded(std::uint64_t size) {
  return (size + k_block_bytes - 1) / k_block_bytes * k_block_bytes;
}

bool has_valid_checksum(std::string_view block) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < k_block_bytes; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return number_field(block.substr(148, 8)) == sum;
}

}  // namespace

std::string make_tar(const std::vector<TarEntry>& entries) {
  std::string tar;
  for (const TarEntry& entry : entries) {
    tar += header_of(entry);
    tar += entry.content;
    tar.resize((tar.size() + k_block_bytes - 1) / k_block_bytes * k_block_bytes, '\0');
  }
  tar.resize(tar.size() + 2 * k_block_bytes, '\0');
  return tar;
}

void TarReader::feed(std::string_view bytes) {
  bytes.remove_prefix(consume_content(bytes));
  if (!m_ended) {
    m_bytes.append(bytes);
  }
}

Result<std::optional<TarMember>> TarReader::next() {
  while (!m_current && !m_ended && m_bytes.size() >= k_block_bytes) {
    if (m_bytes.find_first_not_of('\0') >= k_block_bytes) {
      m_ended = true;
      m_bytes.clear();
      break;
    }
    auto member = parse_header();
    if (!member) {
      return fail(member.error());
    }
    if (!is_extension(member->type)) {
      begin_content(*member);
      m_bytes.erase(0, k_block_bytes + consume_content(std::string_view(m_bytes).substr(k_block_bytes)));
      m_long_name.reset();
      m_long_uid.reset();
      m_long_size.reset();
      break;
    }
    if (member->size > k_max_extension_bytes) {
      return malformed();
    }
    if (m_bytes.size() - k_block_bytes < padded(member->size)) {
      return std::nullopt;
    }
    if (auto read = read_extension(member->type, std::string_view(m_bytes).substr(k_block_bytes, member->size));
        !read) {
      return fail(read.error());
    }
    m_bytes.erase(0, k_block_bytes + padded(member->size));
  }
  return m_to_compare == 0 ? std::exchange(m_current, std::nullopt) : std::nullopt;
}

void TarReader::begin_content(const TarMember& member) {
  const bool is_file = member.type == TarMember::k_file;
  m_current = member;
  m_current->has_expected_content = is_file && member.size == m_expected.size();
  m_to_compare = m_current->has_expected_content ? member.size : 0;
  m_to_skip = is_file ? padded(member.size) - m_to_compare : 0;
}

std::size_t TarReader::consume_content(std::string_view bytes) {
  const auto compared = static_cast<std::size_t>(std::min<std::uint64_t>(m_to_compare, bytes.size()));
  if (compared > 0 && m_expected.substr(m_expected.size() - m_to_compare, compared) != bytes.substr(0, compared)) {
    m_current->has_expected_content = false;
  }
  m_to_compare -= compared;
  const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(m_to_skip, bytes.size() - compared));
  m_to_skip -= skipped;
  return compared + skipped;
}

Result<TarMember> TarReader::parse_header() const {
  const std::string_view block = std::string_view(m_bytes).substr(0, k_block_bytes);
  const auto mode = number_field(block.substr(100, 8));
  const auto uid = number_field(block.substr(108, 8));
  const auto size = number_field(block.substr(124, 12));
  if (!has_valid_checksum(block) || !mode || !uid || !size) {
    return malformed();
  }
  TarMember member;
  std::string name(text_field(block.substr(345, 155)));
  name += (name.empty() ? "" : "/") + std::string(text_field(block.substr(0, 100)));
  member.type = block[156] == '\0' ? TarMember::k_file : block[156];
  member.mode = static_cast<unsigned>(*mode & 07777U);
  member.uid = m_long_uid.value_or(*uid);
  member.size = is_extension(member.type) ? *size : m_long_size.value_or(*size);
  member.name = without_outer_slashes(m_long_name.value_or(name));
  constexpr std::uint64_t k_max_size = 1ULL << 60;  // padding it cannot overflow
  return member.size <= k_max_size ? Result<TarMember>(std::move(member)) : malformed();
}

Result<void> TarReader::read_extension(char type, std::string_view content) {
  if (type == 'L') {
    m_long_name = text_field(content);
  }
  // Records of "LENGTH KEY=VALUE\n", where the length counts the whole record.
  while (type == 'x' && !content.empty()) {
    const std::size_t space = content.find(' ');
    const auto length = space == std::string_view::npos ? std::nullopt : number_in(content.substr(0, space), 10);
    if (!length || *length <= space + 1 || *length > content.size() || content[*length - 1] != '\n') {
      return malformed();
    }
    const std::string_view record = content.substr(space + 1, *length - space - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      return malformed();
    }
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      m_long_name = value;
    } else if (key == "uid" || key == "size") {
      auto& number = key == "uid" ? m_long_uid : m_long_size;
      number = number_in(value, 10);
      if (!number) {
        return malformed();
      }
    }
    content.remove_prefix(*length);
  }
  return {};
}

}  // namespace dockbridge::docker
