#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace dockbridge {

/// What went wrong, for programs (`code`), for people (`message`) and what to do about it (`next_step`).
/// Codes are stable snake_case words; messages are sentences without a final full stop.
struct Error {
  std::string code;
  std::string message;
  std::string next_step{};
  /// The request was sent, but no reply was received. It may have been carried out, or may still be carried out.
  bool outcome_unknown = false;

  /// The same error seen from further up: "<context>: <message>".
  [[nodiscard]] Error within(std::string_view context) const {
    return {code, std::string(context) + ": " + message, next_step, outcome_unknown};
  }
  /// Adds the certain or possible effect of the request, and how to check it.
  [[nodiscard]] Error with_effect(std::string_view effect, std::string_view check) const {
    const std::string before = next_step.empty() ? "" : next_step + ". ";
    return {code, message + "; " + std::string(effect), before + std::string(check), outcome_unknown};
  }

  [[nodiscard]] std::string sentence() const { return next_step.empty() ? message : message + ". " + next_step; }
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string code, std::string message, std::string next_step = {}) {
  return tl::unexpected<Error>(Error{std::move(code), std::move(message), std::move(next_step)});
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
