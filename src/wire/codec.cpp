#include "wire/codec.hpp"

#include <algorithm>

#include "util/json_text.hpp"
#include "wire/frame.hpp"

namespace dockbridge::wire {

namespace {

constexpr const char* k_list_size = "listBytes";

}  // namespace

nlohmann::json Duration::to_json(milliseconds duration) const {
  return std::clamp(duration, milliseconds::zero(), max).count();
}

milliseconds Duration::operator()(const Field& field) const {
  return milliseconds(field.number(static_cast<std::uint64_t>(max.count())));
}

Codec::~Codec() = default;

OutgoingMessage write_message(std::string_view operation, const std::function<void(Codec&)>& visit) {
  Codec codec;
  if (!operation.empty()) {
    codec.write("op", operation);
  }
  visit(codec);
  return std::move(codec).take();
}

void Codec::write_only(const char* key, nlohmann::json value) {
  if (!is_reading()) {
    write(key, std::move(value));
  }
}

void Codec::require(std::initializer_list<const char*> keys) const {
  if (is_reading()) {
    std::for_each(keys.begin(), keys.end(), [&](const char* key) { (void)m_head->at(key); });
  }
}

void Codec::part(const char* key, std::string& text) {
  if (is_reading()) {
    text = take_part(m_head->at(key));
  } else {
    write(key, text.size());
    append(text);
  }
}

void Codec::body(std::string& text) {
  if (m_owned_body != nullptr && m_body.size() == m_owned_body->size()) {
    m_body = {};
    text = std::move(*m_owned_body);
    return;
  }
  std::string_view view = text;
  body(view);
  if (is_reading()) {
    text = view;
  }
}

void Codec::body(std::string_view& text) {
  if (is_reading()) {
    text = m_body;
  } else if (m_outgoing.parts.empty()) {
    m_outgoing.rest = text;
  } else {
    append(text);
  }
}

std::string_view Codec::take_part(const Field& size) {
  const std::string_view part = m_body.substr(0, size.number(m_body.size()));
  m_body.remove_prefix(part.size());
  return part;
}

void Codec::write_list(const char* key, nlohmann::json entries) {
  const std::string text = json_text({{key, std::move(entries)}});
  write(k_list_size, text.size());
  m_outgoing.parts.insert(0, text);
}

nlohmann::json Codec::read_list() {
  return object_in_body(take_part(m_head->at(k_list_size)));
}

nlohmann::json object_in_body(std::string_view text) {
  auto object = parse_bounded(text, k_max_list_depth);
  if (!object) {
    throw BadField("body");
  }
  return std::move(*object);
}

}  // namespace dockbridge::wire
