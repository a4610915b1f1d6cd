#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "error/error.hpp"

namespace dockbridge::wire {

/// Fields of a head that route a frame which is forwarded without being decoded. A field of another type than expected
/// counts as absent.
struct Route {
  std::optional<std::uint64_t> id{};
  std::optional<std::string> op{};
  std::string staging{};    ///< in a request: token of the upload or copy that it belongs to; empty if none
  bool is_staging = false;  ///< in an answer: the upload or copy continues
  bool is_error = false;    ///< in an answer
  std::string error_code{};
};

/// Accepts the same heads as `FrameReader::next`.
Result<Route> route_of(std::string_view head);

}  // namespace dockbridge::wire
