#include "wire/screen_facts.hpp"

#include "wire/process_state.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

std::uint16_t side_from(const Field& field) {
  return static_cast<std::uint16_t>(field.number(k_largest_terminal_side));
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

ScreenFacts ScreenFacts::from_json(const Field& field) {
  ScreenFacts facts;
  facts.size = {side_from(field.at("columns")), side_from(field.at("rows"))};
  const Field cursor = field.at("cursor");
  const auto position = cursor.elements();
  if (position.size() != 2) {
    cursor.fail_here();
  }
  facts.cursor_row = side_from(position[0]);
  facts.cursor_column = side_from(position[1]);
  facts.cursor_visible = field.at("cursorVisible").flag();
  facts.alternate = field.at("alternate").flag();
  if (const auto addressed = field.find("addressed")) {  // absent in the screen of an older keeper
    facts.addressed = addressed->number(k_max_stream_bytes);
  }
  return facts;
}

Result<ScreenFacts> screen_facts_from_json(const json& value) {
  return read_fields(value, ErrorCode::protocol_violation, ScreenFacts::from_json);
}

}  // namespace dockbridge::wire
