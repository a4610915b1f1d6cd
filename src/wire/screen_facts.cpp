#include "wire/screen_facts.hpp"

#include "wire/process_state.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

bool read_side(const json& value, std::uint16_t& to) {
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= k_largest_terminal_side;
  to = fits ? value.get<std::uint16_t>() : to;
  return fits;
}

}  // namespace

json to_json(const ScreenFacts& facts) {
  return {{"columns", facts.size.columns},
          {"rows", facts.size.rows},
          {"cursor", {facts.cursor_row, facts.cursor_column}},
          {"cursorVisible", facts.cursor_visible},
          {"alternate", facts.alternate},
          {"addressed", facts.addressed}};
}

Result<ScreenFacts> screen_facts_from_json(const json& value) {
  ScreenFacts facts;
  const json fields = value.is_object() ? value : json::object();
  const json cursor = fields.value("cursor", json::array());
  const json visible = fields.value("cursorVisible", json());
  const json alternate = fields.value("alternate", json());
  const json addressed = fields.value("addressed", json(0U));  // an older keeper's screen has none
  if (!read_side(fields.value("columns", json()), facts.size.columns) ||
      !read_side(fields.value("rows", json()), facts.size.rows) || !cursor.is_array() || cursor.size() != 2 ||
      !read_side(cursor[0], facts.cursor_row) || !read_side(cursor[1], facts.cursor_column) || !visible.is_boolean() ||
      !alternate.is_boolean() || !addressed.is_number_unsigned() || addressed > k_max_stream_bytes) {
    return fail(ErrorCode::protocol_violation, "The agent sent a malformed screen");
  }
  facts.cursor_visible = visible.get<bool>();
  facts.alternate = alternate.get<bool>();
  facts.addressed = addressed.get<std::uint64_t>();
  return facts;
}

}  // namespace dockbridge::wire
