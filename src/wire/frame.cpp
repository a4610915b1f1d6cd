#include "wire/frame.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "util/json_parse.hpp"
#include "util/json_text.hpp"

namespace dockbridge::wire {

namespace {

constexpr std::size_t k_prefix_bytes = 8;

void append_u32(std::string& out, std::size_t value) {
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xFFU));
  }
}

std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = (value << 8) | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  }
  return value;
}

}  // namespace

void append_frame(std::string& out, const nlohmann::json& head, std::string_view body) {
  const std::string text = json_text(head);
  append_u32(out, text.size());
  append_u32(out, body.size());
  out.append(text);
  out.append(body);
}

std::string encode(const nlohmann::json& head, std::string_view body) {
  std::string out;
  append_frame(out, head, body);
  return out;
}

Result<nlohmann::json> parse_bounded(std::string_view text, int max_depth) {
  ParsedJson parsed = parse_json_text(text, max_depth);
  if (parsed.problem == ParsedJson::Problem::too_deep) {
    return fail(ErrorCode::protocol_violation, fmt::format("JSON is nested deeper than {} levels", max_depth));
  }
  if (!parsed.value.is_object()) {
    return fail(ErrorCode::protocol_violation, "A frame's head is not a JSON object");
  }
  return std::move(parsed.value);
}

std::string_view RawFrame::head() const {
  return std::string_view(m_bytes).substr(k_prefix_bytes, m_head_bytes);
}

std::string_view RawFrame::body() const {
  return std::string_view(m_bytes).substr(k_prefix_bytes + m_head_bytes);
}

Result<std::optional<FrameReader::Extent>> FrameReader::next_extent() {
  const std::string_view rest = std::string_view(m_buffer).substr(m_consumed);
  if (rest.size() >= k_prefix_bytes) {
    const Extent extent{read_u32(rest), read_u32(rest.substr(4))};
    if (extent.head_bytes > k_max_head_bytes || extent.body_bytes > m_max_body) {
      return fail(ErrorCode::protocol_violation,
                  fmt::format("Frame of {} + {} bytes exceeds the limit", extent.head_bytes, extent.body_bytes));
    }
    if (rest.size() >= k_prefix_bytes + extent.head_bytes + extent.body_bytes) {
      return extent;
    }
  }
  m_buffer.erase(0, m_consumed);
  m_consumed = 0;
  return std::nullopt;
}

Result<std::optional<Frame>> FrameReader::next() {
  const auto extent = next_extent();
  if (!extent || !*extent) {
    return extent ? Result<std::optional<Frame>>(std::nullopt) : fail(extent.error());
  }
  const std::string_view rest = std::string_view(m_buffer).substr(m_consumed + k_prefix_bytes);
  auto head = parse_bounded(rest.substr(0, (*extent)->head_bytes), k_max_head_depth);
  if (!head) {
    return fail(head.error());
  }
  Frame frame{std::move(*head), std::string(rest.substr((*extent)->head_bytes, (*extent)->body_bytes))};
  m_consumed += k_prefix_bytes + (*extent)->head_bytes + (*extent)->body_bytes;
  return frame;
}

Result<std::optional<RawFrame>> FrameReader::next_raw() {
  const auto extent = next_extent();
  if (!extent || !*extent) {
    return extent ? Result<std::optional<RawFrame>>(std::nullopt) : fail(extent.error());
  }
  const std::size_t whole = k_prefix_bytes + (*extent)->head_bytes + (*extent)->body_bytes;
  RawFrame frame(m_buffer.substr(m_consumed, whole), (*extent)->head_bytes);
  m_consumed += whole;
  return frame;
}

}  // namespace dockbridge::wire
