#include "tools/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "util/text.hpp"

namespace dockbridge::tools {

using mcp::json;

namespace {

constexpr std::size_t k_max_shown_value = 40;

std::string shown(const json& value) {
  return printable_line(mcp::dump(value), k_max_shown_value);
}

/// A number, or a string with a number; otherwise NaN.
double number_in(const json& value) {
  if (value.is_number()) {
    return value.get<double>();
  }
  double number = NAN;
  if (const auto* text = value.get_ptr<const std::string*>(); text != nullptr && !text->empty()) {
    const char* end = text->data() + text->size();
    const auto parsed = std::from_chars(text->data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end ? number : NAN;
  }
  return number;
}

}  // namespace

std::vector<Arguments::Given> Arguments::find_all(const std::string& name) {
  if (m_read.insert(name).second) {
    m_accepted.push_back(name);
  }
  std::vector<Given> all;
  const auto look_up = [&](const std::string& given_name) {
    m_read.insert(given_name);
    if (const auto found = m_values.find(given_name); found != m_values.end() && !found->is_null()) {
      all.push_back({given_name, &*found});
    }
  };
  look_up(name);
  for (const ArgumentAlias& other : m_aliases) {
    if (other.name == name) {
      look_up(std::string(other.alias));
    }
  }
  if (!all.empty()) {
    m_given_as[name] = all.front().name;
  }
  return all;
}

const json* Arguments::find(const std::string& name) {
  const auto all = find_all(name);
  return all.empty() ? nullptr : all.front().value;
}

void Arguments::reject(const std::string& name, const std::string& problem) {
  if (!m_error) {
    const auto given = m_given_as.find(name);
    m_error = Error{ErrorCode::bad_arguments, fmt::format("Invalid argument {}{}: {}", m_prefix,
                                                          given == m_given_as.end() ? name : given->second, problem)};
  }
}

const std::string* Arguments::find_text(const std::string& name) {
  const json* value = find(name);
  if (value != nullptr && !value->is_string()) {
    reject(name, fmt::format("must be a string, got {}", shown(*value)));
    return nullptr;
  }
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

std::optional<std::string> Arguments::text_or_number(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr || !value->is_number()) {
    return text(name);
  }
  const double number = value->get<double>();
  const bool is_whole = value->is_number_float() && number >= 0 && number < 0x1p53 && number == std::floor(number);
  return is_whole ? std::to_string(static_cast<std::uint64_t>(number)) : value->dump();
}

std::optional<std::string> Arguments::text(const std::string& name) {
  const std::string* value = find_text(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::string_view Arguments::required_view(const std::string& name, const std::string& next_step) {
  const std::string* value = find_text(name);
  if (value == nullptr && !m_error) {
    m_error = Error{ErrorCode::bad_arguments, fmt::format("Missing argument: {}{}", m_prefix, name),
                    next_step.empty() ? fmt::format("Call again with {}", name) : next_step};
    m_is_missing = true;
  }
  return value == nullptr ? std::string_view() : *value;
}

std::string Arguments::required_text(const std::string& name, const std::string& next_step) {
  return std::string(required_view(name, next_step));
}

bool Arguments::flag(const std::string& name, bool otherwise) {
  const json* value = find(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (*value == "true" || *value == "false") {
    return *value == "true";
  }
  if (!value->is_boolean()) {
    reject(name, fmt::format("must be true or false, got {}", shown(*value)));
    return otherwise;
  }
  return value->get<bool>();
}

std::optional<std::int64_t> Arguments::integer(const std::string& name, std::int64_t least, std::int64_t most) {
  std::optional<std::int64_t> largest;
  for (const auto& [given_name, value] : find_all(name)) {
    const double number = number_in(*value);
    if (!(number >= static_cast<double>(least) && number <= static_cast<double>(most)) ||
        number != std::floor(number)) {
      m_given_as[name] = given_name;
      reject(name, fmt::format("must be a whole number from {} to {}, got {}", least, most, shown(*value)));
      return std::nullopt;
    }
    largest = std::max(largest, std::optional(static_cast<std::int64_t>(number)));
  }
  return largest;
}

std::optional<double> Arguments::number(const std::string& name, double least, double most, std::string_view unit) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const double given = number_in(*value);
  if (!(given >= least && given <= most)) {
    reject(name, fmt::format("must be a number{} from {} to {}, got {}", unit, least, most, shown(*value)));
    return std::nullopt;
  }
  return given;
}

std::optional<milliseconds> Arguments::duration(const std::string& name, double least_seconds, double most_seconds) {
  const auto given = number(name, least_seconds, most_seconds, " of seconds");
  return given ? std::optional(milliseconds(static_cast<std::int64_t>(*given * 1000))) : std::nullopt;
}

std::vector<std::pair<std::string, std::string>> Arguments::environment(const std::string& name) {
  std::vector<std::pair<std::string, std::string>> variables;
  const json* value = find(name);
  if (value == nullptr) {
    return variables;
  }
  if (!value->is_object()) {
    reject(name, fmt::format("must be an object of strings, got {}", shown(*value)));
    return variables;
  }
  for (const auto& [variable, content] : value->items()) {
    const bool bad_name =
        variable.empty() || variable.find('=') != std::string::npos || variable.find('\0') != std::string::npos;
    if (bad_name) {
      reject(name, fmt::format("variable name '{}' is empty or contains '=' or NUL", printable_line(variable, 80)));
    } else if (!content.is_string()) {
      reject(name, fmt::format("value of '{}' must be a string, such as \"1\"", printable_line(variable, 80)));
    } else if (content.get_ref<const std::string&>().find('\0') != std::string::npos) {
      reject(name, fmt::format("value of '{}' contains a NUL byte", printable_line(variable, 80)));
    } else {
      variables.emplace_back(variable, content.get<std::string>());
    }
  }
  return variables;
}

std::vector<std::string> Arguments::texts(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) {
    return {};
  }
  if (value->is_string()) {
    return {value->get<std::string>()};
  }
  std::vector<std::string> values;
  for (std::size_t i = 0; value->is_array() && i < value->size() && value->at(i).is_string(); ++i) {
    values.push_back(value->at(i).get<std::string>());
  }
  if (!value->is_array() || values.size() != value->size()) {
    reject(name, fmt::format("must be an array of strings, got {}", shown(*value)));
    return {};
  }
  return values;
}

void Arguments::keep_unlisted(const std::string& name) {
  std::erase(m_accepted, name);
}

std::optional<Arguments> Arguments::object(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    reject(name, fmt::format("must be an object, got {}", shown(*value)));
    return std::nullopt;
  }
  return Arguments(*value, m_aliases, m_prefix + name + ".");
}

std::vector<Arguments> Arguments::objects(const std::string& name) {
  std::vector<Arguments> nested;
  const json* value = find(name);
  if (value == nullptr) {
    return nested;
  }
  for (std::size_t i = 0; value->is_array() && i < value->size(); ++i) {
    if (value->at(i).is_object()) {
      nested.emplace_back(value->at(i), m_aliases, fmt::format("{}{}[{}].", m_prefix, name, i));
    }
  }
  if (!value->is_array() || nested.size() != value->size()) {
    reject(name, fmt::format("must be an array of objects, got {}", shown(*value)));
  }
  return nested;
}

bool Arguments::has(const std::string& name) {
  return find(name) != nullptr;
}

bool Arguments::is_object(const std::string& name) {
  const json* value = find(name);
  return value != nullptr && value->is_object();
}

bool Arguments::is_array(const std::string& name) {
  const json* value = find(name);
  return value != nullptr && value->is_array();
}

void Arguments::adopt(const Arguments& nested) {
  if (!m_error) {
    m_error = nested.m_error;
    m_is_missing = nested.m_is_missing;
  }
  if (!m_nested_unknown) {
    m_nested_unknown = nested.m_nested_unknown ? nested.m_nested_unknown : nested.unknown_argument();
  }
}

std::optional<Error> Arguments::error() const {
  if (m_error && !m_is_missing) {
    return m_error;
  }
  const auto unknown = m_nested_unknown ? m_nested_unknown : unknown_argument();
  return unknown ? unknown : m_error;
}

std::optional<Error> Arguments::unknown_argument() const {
  for (const auto& [name, value] : m_values.items()) {
    if (m_read.contains(name) || is_ignored_argument(name)) {
      continue;
    }
    const std::string nearest = nearest_name(name, m_accepted);
    return Error{ErrorCode::bad_arguments, fmt::format("Unknown argument: {}{}", m_prefix, printable_line(name, 60)),
                 nearest.empty() ? fmt::format("Accepted: {}", fmt::join(m_accepted, ", "))
                                 : fmt::format("Did you mean {}?", nearest)};
  }
  return std::nullopt;
}

}  // namespace dockbridge::tools
