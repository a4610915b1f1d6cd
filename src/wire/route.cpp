#include "wire/route.hpp"

#include <nlohmann/json.hpp>

#include "wire/frame.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

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
  if (!parsed) {
    return fail(parsed.error());
  }
  Route route;
  if (const json& id = member(*parsed, "id"); id.is_number_unsigned()) {
    route.id = id.get<std::uint64_t>();
  }
  if (const json& op = member(*parsed, "op"); op.is_string()) {
    route.op = op.get<std::string>();
  }
  const json& staging = member(*parsed, "staging");
  route.staging = text_or_empty(staging);
  route.is_staging = staging == true;
  route.is_error = parsed->contains("error");
  route.error_code = text_or_empty(member(member(*parsed, "error"), "code"));
  return route;
}

}  // namespace dockbridge::wire
