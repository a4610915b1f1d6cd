#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "error/error.hpp"
#include "util/clock.hpp"
#include "wire/fields.hpp"
#include "wire/names.hpp"
#include "wire/operation.hpp"

namespace dockbridge::wire {

// A message is a struct with a function `void visit(Codec& codec)`. It lists each field once, for writing and reading:
//
//   void Example::visit(Codec& codec) {
//     codec("path", path);
//     codec("size", size, AtMost{k_max_file_bytes});
//     codec.optional("owner", owner);
//     codec.body(bytes);
//   }
//
// `to_json`, `outgoing`, `from_json` and `message_from` below do the rest. A request also has `k_operation`, which they
// write as `op`. A type with its own form in JSON, such as an array, has `to_json(value)` and `Type::from_json(field)`
// instead of `visit`, and can be a field too. An enumeration is written by its name (wire/names.hpp).

class Codec;

template <typename T>
concept Message = requires(T& message, Codec& codec) {
  message.visit(codec);
};

/// Longest duration in a request, except for the run time of a command.
inline constexpr milliseconds k_max_duration{UINT32_MAX};
/// Largest nesting depth of JSON in a body.
inline constexpr int k_max_list_depth = 8;

/// Limits a number. The third argument of a field is a function like this, which reads its value.
struct AtMost {
  std::uint64_t max;
  std::uint64_t operator()(const Field& field) const { return field.number(max); }
};
inline constexpr AtMost k_any_number{UINT64_MAX};

/// Limits a duration in milliseconds. The writer shortens a longer one, the reader rejects it.
struct Duration {
  milliseconds max = k_max_duration;
  [[nodiscard]] nlohmann::json to_json(milliseconds duration) const;
  milliseconds operator()(const Field& field) const;
};

/// Reads a value of type T without special rules.
template <typename T>
struct Plain {
  T operator()(const Field& field) const;
};

/// A message to send.
struct OutgoingMessage {
  nlohmann::json head{};
  std::string parts{};      ///< the start of the body
  std::string_view rest{};  ///< refers to the message; the whole body unless there are parts

  [[nodiscard]] std::string_view body() const { return parts.empty() ? rest : std::string_view(parts); }
};

/// Writes a message, or reads one. Reading throws BadField if a field is malformed.
class Codec {
 public:
  /// For writing.
  Codec() : m_outgoing{nlohmann::json::object()} {}
  /// For reading. Views in the message will refer to the body.
  Codec(const Field& head, std::string_view body) : m_head(&head), m_body(body) {}
  /// For reading. A text that is the whole body is moved from it.
  template <std::same_as<std::string> Text>
  Codec(const Field& head, Text&& body) : m_head(&head), m_body(body), m_owned_body(&body) {}

  ~Codec();
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  [[nodiscard]] bool is_reading() const { return m_head != nullptr; }
  [[nodiscard]] OutgoingMessage take() && { return std::move(m_outgoing); }

  /// A field that is always there.
  template <typename T, typename Read = Plain<T>>
  void operator()(const char* key, T& value, const Read& read = {});
  /// A field that is absent if the value is nullopt, "", 0, false or an empty list.
  template <typename T, typename Read = Plain<T>>
  void optional(const char* key, T& value, const Read& read = {});
  /// A field that is always written. If it is absent, the reader keeps the value that the message has.
  template <typename T, typename Read = Plain<T>>
  void lenient(const char* key, T& value, const Read& read = {});
  /// Fields of this object that are present if `key` is.
  template <Message T>
  void group(const char* key, std::optional<T>& fields);
  /// A field that the readers of this message ignore.
  void write_only(const char* key, nlohmann::json value);
  /// Fields that are optional elsewhere and that this message must have.
  void require(std::initializer_list<const char*> keys) const;

  /// A part of the body. The field `key` has its size.
  void part(const char* key, std::string& text);
  /// The rest of the body. It must be a member of the message.
  void body(std::string& text);
  void body(std::string_view& text);
  /// A list of at most `max` entries in the body, followed by the parts of all entries. The field `listBytes` has the
  /// size of the list. `visit(codec, entry)` visits an entry.
  template <typename Entry, typename Visit>
  void list(const char* key, std::vector<Entry>& entries, std::size_t max, const Visit& visit);

  // For fields with special rules.
  void write(const char* key, nlohmann::json value) { m_outgoing.head[key] = std::move(value); }
  void append(std::string_view part) { m_outgoing.parts += part; }
  [[nodiscard]] const Field& head() const { return *m_head; }
  [[nodiscard]] std::string_view rest() const { return m_body; }
  /// Reads the next part of the body, whose size is in the field.
  std::string_view take_part(const Field& size);

 private:
  /// Adds the list in front of the parts.
  void write_list(const char* key, nlohmann::json entries);
  /// Takes the list from the front of the body.
  nlohmann::json read_list();

  OutgoingMessage m_outgoing;
  const Field* m_head = nullptr;
  std::string_view m_body{};
  std::string* m_owned_body = nullptr;
};

/// Writes what `visit` lists, with this operation; "" means none.
OutgoingMessage write_message(std::string_view operation, const std::function<void(Codec&)>& visit);

/// The head and body of a message, which must outlive them.
template <Message T>
OutgoingMessage outgoing(const T& message) {
  std::string_view operation;
  if constexpr (requires { T::k_operation; }) {
    operation = name_of(T::k_operation);
  }
  // One function serves both directions. It changes the message only when it reads.
  return write_message(operation, [&](Codec& codec) { const_cast<T&>(message).visit(codec); });
}
template <Message T>
OutgoingMessage outgoing(const T&& message) = delete;

/// The head of a message.
template <Message T>
nlohmann::json to_json(const T& message) {
  return outgoing(message).head;
}

/// Throws BadField if a field is malformed. Views in the message refer to the body.
template <Message T, typename Body = std::string_view>
T from_json(const Field& head, Body&& body = {}) {
  T message{};
  Codec codec(head, std::forward<Body>(body));
  message.visit(codec);
  return message;
}

/// The message in a frame. Error `code` with the path of the failing field if it is malformed.
template <Message T, typename Body = std::string_view>
Result<T> message_from(const nlohmann::json& head, ErrorCode code, Body&& body = {}) {
  return read_fields(head, code, [&](const Field& field) { return from_json<T>(field, std::forward<Body>(body)); });
}

/// A JSON object in a body.
nlohmann::json object_in_body(std::string_view text);

// ---- The rest are the definitions of the templates.

template <typename T>
inline constexpr bool k_is_optional = false;
template <typename T>
inline constexpr bool k_is_optional<std::optional<T>> = true;
template <typename T>
inline constexpr bool k_is_vector = false;
template <typename T>
inline constexpr bool k_is_vector<std::vector<T>> = true;

template <typename T, typename Read>
nlohmann::json json_of(const T& value, const Read& read) {
  if constexpr (k_is_optional<T>) {
    return json_of(*value, read);
  } else if constexpr (requires { read.to_json(value); }) {
    return read.to_json(value);
  } else if constexpr (std::is_same_v<T, milliseconds>) {
    return Duration{}.to_json(value);
  } else if constexpr (Named<T>) {
    return name_of(value);
  } else if constexpr (requires { to_json(value); }) {
    return to_json(value);
  } else if constexpr (k_is_vector<T>) {
    nlohmann::json array = nlohmann::json::array();
    for (const auto& element : value) {
      array.push_back(json_of(element, read));
    }
    return array;
  } else {
    return value;
  }
}

template <typename T>
T Plain<T>::operator()(const Field& field) const {
  if constexpr (k_is_optional<T>) {
    return Plain<typename T::value_type>{}(field);
  } else if constexpr (Message<T>) {
    return from_json<T>(field);
  } else if constexpr (requires { T::from_json(field); }) {
    return T::from_json(field);
  } else if constexpr (Named<T>) {
    return field.word(value_named<T>);
  } else if constexpr (std::is_same_v<T, milliseconds>) {
    return Duration{}(field);
  } else if constexpr (std::is_same_v<T, bool>) {
    return field.flag();
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(field.number(std::min<std::uint64_t>(k_max_count, std::numeric_limits<T>::max())));
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return field.signed_number();
  } else if constexpr (k_is_vector<T>) {
    T values;
    for (const Field& element : field.elements()) {
      values.push_back(Plain<typename T::value_type>{}(element));
    }
    return values;
  } else {
    return field.text();
  }
}

template <typename T, typename Read>
void Codec::operator()(const char* key, T& value, const Read& read) {
  if (is_reading()) {
    value = static_cast<T>(read(m_head->at(key)));
  } else {
    write(key, json_of(value, read));
  }
}

template <typename T, typename Read>
void Codec::optional(const char* key, T& value, const Read& read) {
  if (is_reading()) {
    if (const auto field = m_head->find(key)) {
      value = static_cast<T>(read(*field));
    }
    return;
  }
  bool is_empty = false;
  if constexpr (k_is_optional<T>) {
    is_empty = !value.has_value();
  } else if constexpr (requires { value.empty(); }) {
    is_empty = value.empty();
  } else {
    is_empty = value == T{};
  }
  if (!is_empty) {
    write(key, json_of(value, read));
  }
}

template <typename T, typename Read>
void Codec::lenient(const char* key, T& value, const Read& read) {
  if (!is_reading() || m_head->find(key)) {
    (*this)(key, value, read);
  }
}

template <Message T>
void Codec::group(const char* key, std::optional<T>& fields) {
  if (is_reading() && m_head->find(key)) {
    fields = T{};  // clang 14 rejects emplace() for a nested struct whose members have initializers
  }
  if (fields) {
    fields->visit(*this);
  }
}

template <typename Entry, typename Visit>
void Codec::list(const char* key, std::vector<Entry>& entries, std::size_t max, const Visit& visit) {
  if (is_reading()) {
    const nlohmann::json list = read_list();
    const Field fields(list);
    const Field array = fields.at(key);
    for (const Field& field : array.elements(max)) {
      Codec codec(field, m_body);
      visit(codec, entries.emplace_back());
      m_body = codec.m_body;
    }
    return;
  }
  nlohmann::json array = nlohmann::json::array();
  for (Entry& entry : entries) {
    Codec codec;
    visit(codec, entry);
    array.push_back(std::move(codec.m_outgoing.head));
    append(codec.m_outgoing.parts);
  }
  write_list(key, std::move(array));
}

}  // namespace dockbridge::wire
