#include "mcp/transport/http/refusal.hpp"

#include <fmt/format.h>

namespace dockbridge::mcp::http {

Response error_response(int status, int code, const std::string& message, const json& id, json data) {
  Response response;
  response.status = status;
  response.body = dump(error_message(id, code, message, std::move(data)));
  return response;
}

Response refused(int status, const std::string& message, const json& id) {
  Response response = error_response(status, k_invalid_request, message, id);
  response.refusal = std::to_string(status);
  return response;
}

Response too_many(const char* what) {
  Response response = refused(429, fmt::format("too many {}", what));
  response.refusal = what;
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace dockbridge::mcp::http
