#include "wire/error_message.hpp"

#include <stdexcept>

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

Error error_from_json(const nlohmann::json& value) {
  const auto code = error_code_named(value.at("code").get_ref<const std::string&>());
  if (!code) {
    throw std::runtime_error("unknown error code");
  }
  return {*code, printable_text(value.at("message").get_ref<const std::string&>(), k_max_message_bytes),
          printable_line(value.at("nextStep").get_ref<const std::string&>(), k_max_step_bytes)};
}

}  // namespace dockbridge::wire
