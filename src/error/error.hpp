#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "error/error_code.hpp"

namespace dockbridge {

/// Failure of an operation: a code for programs, a message for people and models, and the next step.
struct Error {
  ErrorCode code = ErrorCode::internal_error;
  std::string message;      ///< sentence without a final full stop
  std::string next_step{};  ///< empty means the next step of the error table
  /// The request was sent, but no reply was received. It may have been carried out, or may still be carried out.
  bool outcome_unknown = false;

  [[nodiscard]] std::string_view step() const {
    return next_step.empty() ? describe(code).next_step : std::string_view(next_step);
  }
  /// Copy with the message "<context>: <message>".
  [[nodiscard]] Error within(std::string_view context) const {
    return {code, std::string(context) + ": " + message, next_step, outcome_unknown};
  }
  /// Adds the certain or possible effect of the request, and how to check it. The check precedes the other step, which
  /// is dropped if it advises a repetition: that could cause the effect twice.
  [[nodiscard]] Error with_effect(std::string_view effect, std::string_view check) const {
    return {code, message + "; " + std::string(effect),
            std::string(check) + (describe(code).advises_repetition ? "" : ". " + std::string(step())),
            outcome_unknown};
  }

  [[nodiscard]] std::string sentence() const { return message + ". " + std::string(step()); }
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string next_step = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(next_step)});
}

inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

/// Fails with an error whose outcome is unknown.
inline tl::unexpected<Error> fail_unknown(Error error) {
  error.outcome_unknown = true;
  return fail(std::move(error));
}

}  // namespace dockbridge
