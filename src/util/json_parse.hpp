#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace dockbridge {

/// What parsing may allocate. Small values take up to 32 times the length of their text.
struct JsonBudget {
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
  /// Called before each further piece of memory is used; false ends the parse. Empty: there is nobody to ask.
  std::function<bool(std::size_t bytes)> claim{};
};

/// JSON from a peer that is not trusted. `value` is discarded if there is a problem.
struct ParsedJson {
  enum class Problem {
    none,
    not_json,
    too_deep,
    too_large,  ///< it takes more than the budget's `max_bytes`
    no_room,    ///< the budget's `claim` refused more
  };
  nlohmann::json value;
  Problem problem = Problem::none;
};

/// Takes what the library's own parser takes and makes the same of it, with depth and memory bounded while it parses;
/// long texts, which are most of what is sent here, take a tenth of the time.
ParsedJson parse_json_text(std::string_view text, int max_depth, const JsonBudget& budget = {});

}  // namespace dockbridge
