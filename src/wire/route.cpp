#include "wire/route.hpp"

#include <nlohmann/json.hpp>

#include "wire/error_message.hpp"
#include "wire/fields.hpp"
#include "wire/frame.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

constexpr const char* k_id = "id";
constexpr const char* k_error = "error";

/// A member of an object; null if it is absent.
const json& member(const json& object, const char* key) {
  static const json k_absent;
  const auto found = object.find(key);
  return found == object.end() ? k_absent : *found;
}

std::string text_or_empty(const json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace

Result<Route> route_of(std::string_view head) {
  const auto parsed = parse_bounded(head, k_max_head_depth);
  return parsed ? Result<Route>(route_in(*parsed)) : fail(parsed.error());
}

Route route_in(const json& head) {
  Route route;
  route.id = id_in(head);
  if (const json& op = member(head, "op"); op.is_string()) {
    const auto& name = op.get_ref<const std::string&>();
    route.operation = operation_named(name);
    route.unknown_operation = route.operation ? std::nullopt : std::optional(name);
  }
  const json& staging = member(head, "staging");
  route.staging = text_or_empty(staging);
  route.is_staging = staging == true;
  route.is_error = head.contains(k_error);
  route.error_code = error_code_named(text_or_empty(member(member(head, k_error), "code")));
  return route;
}

void set_id(json& head, std::uint64_t id) {
  head[k_id] = id;
}

std::optional<std::uint64_t> id_in(const json& head) {
  const json& id = member(head, k_id);
  return id.is_number_unsigned() ? std::optional(id.get<std::uint64_t>()) : std::nullopt;
}

json error_head(const Error& error) {
  return {{k_error, to_json(error)}};
}

Result<void> outcome_in(const json& head) {
  if (!head.contains(k_error)) {
    return {};
  }
  const auto error = read_fields(head, ErrorCode::protocol_violation,
                                 [](const Field& fields) { return error_from(fields.at(k_error)); });
  return error ? fail(*error) : fail_unknown(error.error());
}

}  // namespace dockbridge::wire
