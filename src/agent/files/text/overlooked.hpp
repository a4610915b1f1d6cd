#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dockbridge::agent {

/// What is left of a text without everything that a reader may overlook: blanks, line ends and invisible characters are
/// gone, kinds of quotes and dashes are the same, and so are A and a. Appended to `out`.
void fold_into(std::string& out, std::string_view text);
std::string fold(std::string_view text);

/// A place in a text that is equal to the wanted one when both are folded.
struct Overlooked {
  std::size_t begin = 0;  ///< from the first to the last visible character
  std::size_t end = 0;
  std::size_t places = 0;    ///< how many there are like it, itself included; 100 for any more
  std::string kinds;         ///< what differs: "indentation, quotes"
  std::size_t first_at = 0;  ///< where in the text that begins
  std::string first;         ///< and how: "1 tab in the file, 4 spaces in oldString"
};

/// The first such place. Takes linear time.
std::optional<Overlooked> find_overlooked(std::string_view text, std::string_view wanted);

}  // namespace dockbridge::agent
