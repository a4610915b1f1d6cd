#include "wire/fields.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dockbridge::wire {

std::string Field::path() const {
  if (m_parent == nullptr) {
    return "";
  }
  const std::string above = m_parent->path();
  if (m_key == nullptr) {
    return above + "[" + std::to_string(m_index) + "]";
  }
  return above.empty() ? m_key : above + "." + m_key;
}

void Field::fail_here() const {
  const std::string where = path();
  throw BadField(where.empty() ? "head" : where);
}

std::optional<Field> Field::find(const char* key) const& {
  if (!m_value->is_object()) {
    fail_here();
  }
  const auto found = m_value->find(key);
  return found == m_value->end() ? std::nullopt : std::optional(Field(*found, this, key, 0));
}

Field Field::at(const char* key) const& {
  static const nlohmann::json k_absent;
  const auto found = find(key);
  if (!found) {
    Field(k_absent, this, key, 0).fail_here();
  }
  return *found;
}

std::vector<Field> Field::elements(std::size_t max) const& {
  if (!m_value->is_array() || m_value->size() > max) {
    fail_here();
  }
  std::vector<Field> fields;
  fields.reserve(m_value->size());
  for (const nlohmann::json& element : *m_value) {
    fields.push_back(Field(element, this, nullptr, fields.size()));
  }
  return fields;
}

std::uint64_t Field::number(std::uint64_t max) const {
  // A parsed number is unsigned, one that was put into a message as an int is not.
  const bool is_negative =
      !m_value->is_number_unsigned() && m_value->is_number_integer() && m_value->get<std::int64_t>() < 0;
  if (!m_value->is_number_integer() || is_negative || m_value->get<std::uint64_t>() > max) {
    fail_here();
  }
  return m_value->get<std::uint64_t>();
}

std::int64_t Field::signed_number(std::uint64_t max) const {
  if (m_value->is_number_unsigned()) {
    return static_cast<std::int64_t>(number(std::min<std::uint64_t>(max, INT64_MAX)));
  }
  const std::int64_t value = m_value->is_number_integer() ? m_value->get<std::int64_t>() : INT64_MIN;
  const auto limit = static_cast<std::int64_t>(std::min<std::uint64_t>(max, INT64_MAX));
  if (value < -limit || value > limit) {
    fail_here();
  }
  return value;
}

bool Field::flag() const {
  if (!m_value->is_boolean()) {
    fail_here();
  }
  return m_value->get<bool>();
}

const std::string& Field::text() const {
  if (!m_value->is_string()) {
    fail_here();
  }
  return m_value->get_ref<const std::string&>();
}

const std::string& Field::name(bool (*is_valid)(std::string_view)) const {
  const std::string& value = text();
  if (!value.empty() && !is_valid(value)) {
    fail_here();
  }
  return value;
}

}  // namespace dockbridge::wire
