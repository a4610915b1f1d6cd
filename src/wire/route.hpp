#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "wire/operation.hpp"

namespace dockbridge::wire {

/// Fields of a head that route a frame which is forwarded without being decoded. A field of another type than expected
/// counts as absent.
struct Route {
  std::optional<std::uint64_t> id{};
  std::optional<Operation> operation{};
  std::optional<std::string> unknown_operation{};  ///< the name of an operation that does not exist
  std::string staging{};    ///< in a request: token of the upload or copy that it belongs to; empty if none
  bool is_staging = false;  ///< in an answer: the upload or copy continues
  bool is_error = false;    ///< in an answer
  std::optional<ErrorCode> error_code{};
};

/// Accepts the same heads as `FrameReader::next`.
Result<Route> route_of(std::string_view head);
Route route_in(const nlohmann::json& head);

// The id of a request and the error of an answer are in the head beside the fields of the message.

void set_id(nlohmann::json& head, std::uint64_t id);
/// nullopt if the id is absent or malformed.
std::optional<std::uint64_t> id_in(const nlohmann::json& head);
/// Head of an answer that reports an error.
nlohmann::json error_head(const Error& error);
/// Fails with the error that the answer reports. If that is malformed, the outcome of the request is unknown.
Result<void> outcome_in(const nlohmann::json& head);

}  // namespace dockbridge::wire
