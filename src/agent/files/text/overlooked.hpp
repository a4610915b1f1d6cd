#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Folds a text: removes blanks, line ends and invisible characters, and makes all quotes, all dashes, and upper and
/// lower case the same. Appends the result to `out`.
void fold_into(std::string& out, std::string_view text);
std::string fold(std::string_view text);

/// A place in a text that is equal to the wanted text when both are folded.
struct Overlooked {
  std::size_t begin = 0;  ///< first visible character; `end` is after the last one
  std::size_t end = 0;
  std::size_t places = 0;    ///< number of such places, up to 100
  std::string kinds;         ///< kinds of differences: "indentation, quotes"
  std::size_t first_at = 0;  ///< position of the first difference
  std::string first;         ///< first difference: "1 tab in the file, 4 spaces in oldString"
};

/// Finds the first such place. Takes linear time.
std::optional<Overlooked> find_overlooked(std::string_view text, std::string_view wanted);

}  // namespace dockbridge::agent
