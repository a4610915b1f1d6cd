#include "sandbox/session_events.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "util/json_parse.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

constexpr int k_max_event_depth = 32;  // metadata of a display may be nested
constexpr std::size_t k_max_event_memory = 2 * k_max_answer_bytes;
constexpr std::size_t k_max_parts = 32;
constexpr std::size_t k_max_type = 100;
constexpr std::size_t k_max_key = 64;
constexpr std::size_t k_max_name = 4096;
constexpr std::size_t k_max_dimensions = 64;
constexpr std::size_t k_max_list = 100'000;
constexpr std::uint32_t k_max_side = 1'000'000;
constexpr double k_max_seconds = 1e9;

/// A field of an event that does not have the form that it must have.
struct BadEvent {};

[[noreturn]] void reject_event() {
  throw BadEvent{};
}

const json* member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_in(const json& object, const char* key, std::size_t max = k_max_answer_bytes) {
  const json* value = member(object, key);
  if (value == nullptr) {
    return "";
  }
  if (!value->is_string() || value->get_ref<const std::string&>().size() > max) {
    reject_event();
  }
  return value->get<std::string>();
}

std::uint64_t number_in(const json& object, const char* key, std::uint64_t max = wire::k_max_count) {
  const json* value = member(object, key);
  if (value == nullptr) {
    return 0;
  }
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > max) {
    reject_event();
  }
  return value->get<std::uint64_t>();
}

bool flag_in(const json& object, const char* key) {
  const json* value = member(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

const json& object_in(const json& object, const char* key) {
  const json* value = member(object, key);
  if (value == nullptr || !value->is_object()) {
    reject_event();
  }
  return *value;
}

const json& array_in(const json& object, const char* key) {
  const json* value = member(object, key);
  if (value == nullptr || !value->is_array() || value->size() > k_max_list) {
    reject_event();
  }
  return *value;
}

/// An exit status. The driver passes on any integer that user code chose.
std::optional<int> status_in(const json& object, const char* key) {
  const json* value = member(object, key);
  if (value == nullptr || !value->is_number()) {
    return std::nullopt;
  }
  constexpr std::uint64_t k_low_byte = 0xFF;
  const bool is_integer = value->is_number_integer();
  return is_integer ? static_cast<int>(static_cast<std::uint64_t>(value->get<std::int64_t>()) & k_low_byte) : 1;
}

SavedFile saved_file_from(const json& value) {
  SavedFile file;
  file.path = text_in(value, "path", k_max_name);
  file.problem = text_in(value, "error", k_max_name);
  file.bytes = number_in(value, "bytes");
  file.width = static_cast<std::uint32_t>(std::min<std::uint64_t>(number_in(value, "width"), k_max_side));
  file.height = static_cast<std::uint32_t>(std::min<std::uint64_t>(number_in(value, "height"), k_max_side));
  if (!file.path.empty() && !file.path.starts_with('/')) {
    reject_event();
  }
  return file;
}

/// `cut` has the whole lengths of the texts that are cut.
MimeBundle bundle_from(const json& data, const json* cut) {
  MimeBundle bundle;
  for (const auto& [type, content] : data.items()) {
    if (type.size() > k_max_type || bundle.size() == k_max_parts) {
      reject_event();
    }
    MimePart part{.type = type};
    if (content.is_string()) {
      part.text = content.get<std::string>();
      part.whole_length = cut != nullptr && cut->is_object() ? number_in(*cut, type.c_str()) : 0;
    } else if (content.is_object()) {
      part.file = saved_file_from(content);
    } else {
      reject_event();
    }
    bundle.push_back(std::move(part));
  }
  return bundle;
}

CellError error_from(const json& value) {
  CellError error;
  error.name = text_in(value, "name");
  error.value = text_in(value, "value");
  error.traceback = text_in(value, "traceback");
  error.exit_status = status_in(value, "code");
  return error;
}

SessionVariable variable_from(const json& value) {
  if (!value.is_object()) {
    reject_event();
  }
  SessionVariable variable;
  variable.name = text_in(value, "name", k_max_name);
  variable.type = text_in(value, "type", k_max_name);
  variable.text = text_in(value, "repr", k_max_name);
  if (value.contains("shape")) {
    for (const json& side : array_in(value, "shape")) {
      if (!side.is_number_unsigned() || variable.shape.size() == k_max_dimensions) {
        reject_event();
      }
      variable.shape.push_back(side.get<std::uint64_t>());
    }
  }
  for (const auto& [key, field] : {std::pair("len", &variable.length), std::pair("bytes", &variable.bytes)}) {
    const json* number = member(value, key);
    if (number != nullptr && number->is_number_unsigned()) {
      *field = number->get<std::uint64_t>();
    }
  }
  return variable;
}

void read_end(const json& value, SessionEvent& event) {
  const auto status = wire::value_named<CellStatus>(text_in(value, "status", k_max_key));
  if (!status) {
    reject_event();
  }
  event.status = *status;
  if (value.contains("value")) {
    event.bundle = bundle_from(object_in(value, "value"), member(value, "cut"));
  }
  if (value.contains("error")) {
    event.error = error_from(object_in(value, "error"));
  }
  const json* seconds = member(value, "seconds");
  event.seconds = seconds != nullptr && seconds->is_number() ? seconds->get<double>() : 0;
  if (!(event.seconds >= 0 && event.seconds <= k_max_seconds)) {
    reject_event();
  }
  event.is_state_kept = flag_in(value, "kept");
  event.exit_status = status_in(value, "exit");
}

void read_variables(const json& value, SessionEvent& event) {
  for (const json& entry : array_in(value, "variables")) {
    event.variables.push_back(variable_from(entry));
  }
  const std::uint64_t total = number_in(value, "total");
  event.left_out = total - std::min<std::uint64_t>(total, event.variables.size());
  event.is_interrupted = flag_in(value, "interrupted");
}

void read_history(const json& value, SessionEvent& event) {
  for (const json& entry : array_in(value, "cells")) {
    if (!entry.is_object()) {
      reject_event();
    }
    event.history.push_back({number_in(entry, "cell"), text_in(entry, "code")});
  }
  event.left_out = number_in(value, "dropped");
}

SessionEvent event_from(const json& value) {
  const auto kind = wire::value_named<SessionEventKind>(text_in(value, "event", k_max_key));
  if (!kind) {
    reject_event();
  }
  SessionEvent event{.kind = *kind};
  event.cell = number_in(value, "cell");
  event.key = text_in(value, "key", k_max_key);
  switch (*kind) {
    case SessionEventKind::ready:
    case SessionEventKind::too_old:
      event.version = text_in(value, "version", k_max_name);
      event.executable = text_in(value, "executable", k_max_name);
      event.prefix = text_in(value, "prefix", k_max_name);
      event.has_ipython = flag_in(value, "ipython");
      break;
    case SessionEventKind::begin:
      event.first_line = text_in(value, "first", k_max_name);
      event.is_limited = flag_in(value, "limited");
      break;
    case SessionEventKind::display:
      event.bundle = bundle_from(object_in(value, "data"), member(value, "cut"));
      break;
    case SessionEventKind::end:
      read_end(value, event);
      break;
    case SessionEventKind::history:
      event.request = number_in(value, "request");
      read_history(value, event);
      break;
    case SessionEventKind::variables:
      event.request = number_in(value, "request");
      read_variables(value, event);
      break;
    case SessionEventKind::pong:
      event.request = number_in(value, "request");
      break;
    case SessionEventKind::bad_request:
      event.message = text_in(value, "message", k_max_name);
      break;
    case SessionEventKind::stale:
    case SessionEventKind::idle:
      break;
  }
  return event;
}

}  // namespace

const MimePart* find_part(const MimeBundle& bundle, std::string_view type) {
  const auto found =
      std::find_if(bundle.begin(), bundle.end(), [&](const MimePart& part) { return part.type == type; });
  return found == bundle.end() ? nullptr : &*found;
}

std::optional<SessionEvent> parse_session_event(std::string_view line) {
  const ParsedJson parsed = parse_json_text(line, k_max_event_depth, {k_max_event_memory, {}});
  if (!parsed.value.is_object()) {
    return std::nullopt;
  }
  try {
    return event_from(parsed.value);
  } catch (const BadEvent&) {
    return std::nullopt;
  }
}

}  // namespace dockbridge::sandbox
