#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "wire/codec.hpp"
#include "wire/fields.hpp"
#include "wire/frame.hpp"

namespace dockbridge::test {

using nlohmann::json;

/// An object in an object, `levels` deep.
inline std::string nested(int levels) {
  std::string text = "1";
  for (int i = 0; i < levels; ++i) {
    text = "{\"a\":" + text + "}";
  }
  return text;
}

/// A frame as the other program receives it.
inline wire::Frame received(const json& head, const std::string& body = "") {
  wire::FrameReader reader(wire::k_max_body_to_agent);
  reader.feed(wire::encode(head, body));
  auto frame = reader.next();
  REQUIRE(frame);
  REQUIRE(*frame);
  return std::move(**frame);
}

/// The message with this head and body. Views in it refer to the body.
template <typename Message>
Message message(const json& head, const std::string& body = "") {
  const wire::Frame frame = received(head, body);
  const wire::Field field(frame.head);
  return wire::from_json<Message>(field, body);
}

/// The path in the error of a malformed message; empty if it is well formed.
template <typename Message>
std::string bad_path(const json& head, const std::string& body = "") {
  const auto read = wire::message_from<Message>(head, ErrorCode::bad_request, body);
  const std::string start = "Malformed message: ";
  if (read) {
    return "";
  }
  CHECK(read.error().code == ErrorCode::bad_request);
  REQUIRE(read.error().message.starts_with(start));
  return read.error().message.substr(start.size());
}

/// Checks every field of the head: an object in its place is rejected, and so is its absence unless it is in
/// `optional`.
template <typename Message>
void check_fields(const json& head, const std::string& body, const std::vector<std::string>& optional = {}) {
  CHECK(bad_path<Message>(head, body).empty());
  for (const auto& [key, value] : head.items()) {
    if (key == "op" || (key == "staging" && value.is_boolean())) {
      continue;  // read only to route messages
    }
    CAPTURE(key);
    json forged = head;
    forged[key] = json::object();
    CHECK(bad_path<Message>(forged, body) == key);
    forged.erase(key);
    const bool is_optional = std::find(optional.begin(), optional.end(), key) != optional.end();
    CHECK(bad_path<Message>(forged, body) == (is_optional ? "" : key));
  }
}

}  // namespace dockbridge::test
