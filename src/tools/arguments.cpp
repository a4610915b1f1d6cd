#include "tools/arguments.hpp"

#include <fmt/format.h>

#include <cmath>

#include "util/text.hpp"

namespace dockbridge::tools {

using mcp::json;

const json* Arguments::find(const std::string& name) {
  m_read.insert(name);
  const auto found = m_values.find(name);
  return found == m_values.end() || found->is_null() ? nullptr : &*found;
}

void Arguments::reject(const std::string& name, const std::string& problem) {
  if (!m_error) {
    m_error = Error{"bad_arguments", fmt::format("argument '{}{}' {}", m_prefix, name, problem),
                    "Correct it and call again; tools/list has the schema"};
  }
}

const std::string* Arguments::find_text(const std::string& name) {
  const json* value = find(name);
  if (value != nullptr && !value->is_string()) {
    reject(name, fmt::format("has to be a string, not {}", value->type_name()));
    return nullptr;
  }
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

std::optional<std::string> Arguments::text(const std::string& name) {
  const std::string* value = find_text(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::string_view Arguments::required_view(const std::string& name) {
  const std::string* value = find_text(name);
  if (value == nullptr) {
    reject(name, "is required");
  }
  return value == nullptr ? std::string_view() : *value;
}

std::string Arguments::required_text(const std::string& name) {
  return std::string(required_view(name));
}

bool Arguments::flag(const std::string& name, bool otherwise) {
  const json* value = find(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_boolean()) {
    reject(name, fmt::format("has to be true or false, not {}", value->type_name()));
    return otherwise;
  }
  return value->get<bool>();
}

std::optional<std::int64_t> Arguments::integer(const std::string& name, std::int64_t least, std::int64_t most) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= static_cast<double>(least) && number <= static_cast<double>(most)) || number != std::floor(number)) {
    reject(name, fmt::format("has to be a whole number from {} to {}", least, most));
    return std::nullopt;
  }
  return static_cast<std::int64_t>(number);
}

std::optional<milliseconds> Arguments::duration(const std::string& name, double least_seconds, double most_seconds) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= least_seconds && number <= most_seconds)) {
    reject(name, fmt::format("has to be a number of seconds from {} to {}", least_seconds, most_seconds));
    return std::nullopt;
  }
  return milliseconds(static_cast<std::int64_t>(number * 1000));
}

std::vector<std::pair<std::string, std::string>> Arguments::environment(const std::string& name) {
  std::vector<std::pair<std::string, std::string>> variables;
  const json* value = find(name);
  if (value == nullptr) {
    return variables;
  }
  if (!value->is_object()) {
    reject(name, "has to be an object of strings");
    return variables;
  }
  for (const auto& [variable, content] : value->items()) {
    const bool bad_name =
        variable.empty() || variable.find('=') != std::string::npos || variable.find('\0') != std::string::npos;
    if (bad_name) {
      reject(name, fmt::format("has the variable name '{}', which is empty or holds '=' or NUL",
                               printable_line(variable, 80)));
    } else if (!content.is_string()) {
      reject(name, fmt::format("has a value for '{}' that is not a string", printable_line(variable, 80)));
    } else if (content.get_ref<const std::string&>().find('\0') != std::string::npos) {
      reject(name, fmt::format("has a NUL byte in the value of '{}'", printable_line(variable, 80)));
    } else {
      variables.emplace_back(variable, content.get<std::string>());
    }
  }
  return variables;
}

std::vector<std::string> Arguments::texts(const std::string& name) {
  std::vector<std::string> values;
  const json* value = find(name);
  if (value != nullptr && !value->is_array()) {
    reject(name, fmt::format("has to be an array of strings, not {}", value->type_name()));
    return values;
  }
  for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
    if (!value->at(i).is_string()) {
      reject(name, "has to be an array of strings");
      return {};
    }
    values.push_back(value->at(i).get<std::string>());
  }
  return values;
}

std::optional<Arguments> Arguments::object(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    reject(name, fmt::format("has to be an object, not {}", value->type_name()));
    return std::nullopt;
  }
  return Arguments(*value, m_prefix + name + ".");
}

std::vector<Arguments> Arguments::objects(const std::string& name) {
  std::vector<Arguments> nested;
  const json* value = find(name);
  if (value == nullptr) {
    return nested;
  }
  for (std::size_t i = 0; value->is_array() && i < value->size(); ++i) {
    if (value->at(i).is_object()) {
      nested.emplace_back(value->at(i), fmt::format("{}{}[{}].", m_prefix, name, i));
    }
  }
  if (!value->is_array() || nested.size() != value->size()) {
    reject(name, "has to be an array of objects");
  }
  return nested;
}

bool Arguments::has(const std::string& name) const {
  const auto found = m_values.find(name);
  return found != m_values.end() && !found->is_null();
}

bool Arguments::is_object(const std::string& name) const {
  const auto found = m_values.find(name);
  return found != m_values.end() && found->is_object();
}

bool Arguments::is_text(const std::string& name) const {
  const auto found = m_values.find(name);
  return found != m_values.end() && found->is_string();
}

void Arguments::adopt(const Arguments& nested) {
  if (!m_error) {
    m_error = nested.m_error;
  }
  for (const std::string& name : nested.unknown()) {
    m_nested_unknown.push_back(name);
  }
}

std::vector<std::string> Arguments::unknown() const {
  std::vector<std::string> names = m_nested_unknown;
  for (const auto& [name, value] : m_values.items()) {
    if (m_read.count(name) == 0) {
      names.push_back(m_prefix + name);
    }
  }
  return names;
}

}  // namespace dockbridge::tools
