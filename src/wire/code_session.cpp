#include "wire/code_session.hpp"

#include <algorithm>
#include <cctype>

namespace dockbridge::wire {

namespace {

constexpr milliseconds k_max_idle_limit = std::chrono::hours(24 * 365);

const std::string& session_name_from(const Field& field) {
  return field.name(is_session_name);
}

}  // namespace

void CodeSession::visit(Codec& codec) {
  codec("kind", kind);
  codec.optional("name", name, session_name_from);
  codec.optional("interpreter", interpreter);
  codec.lenient("idleLimitMs", idle_limit, Duration{k_max_idle_limit});
  codec.lenient("ipython", may_use_ipython);
  codec.lenient("warm", warm_interpreters, AtMost{k_max_warm_interpreters});
}

void CodeSessionLabel::visit(Codec& codec) {
  codec("kind", kind);
  codec.optional("name", name, session_name_from);
  codec.optional("warm", is_warm);
}

bool is_session_name(std::string_view name) {
  const auto is_alphanumeric = [](unsigned char c) { return std::isalnum(c) != 0 && c < 0x80; };
  return !name.empty() && name.size() <= k_max_session_name && is_alphanumeric(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [&](unsigned char c) { return is_alphanumeric(c) || c == '_' || c == '-' || c == '.'; });
}

}  // namespace dockbridge::wire
