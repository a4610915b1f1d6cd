#include "wire/error_message.hpp"

#include <nlohmann/json.hpp>

#include "util/text.hpp"

namespace dockbridge::wire {

namespace {

/// A message may show lines of a file, or the difference to an earlier content.
constexpr std::size_t k_max_message_bytes = 24UL * 1024;
constexpr std::size_t k_max_step_bytes = 2000;

}  // namespace

nlohmann::json to_json(const Error& error) {
  return {{"code", name_of(error.code)}, {"message", error.message}, {"nextStep", error.next_step}};
}

Error error_from(const Field& field) {
  return {field.at("code").word(error_code_named), printable_text(field.at("message").text(), k_max_message_bytes),
          printable_line(field.at("nextStep").text(), k_max_step_bytes)};
}

}  // namespace dockbridge::wire
