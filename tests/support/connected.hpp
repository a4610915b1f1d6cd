#pragma once

#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <vector>

#include "support/container.hpp"
#include "support/field.hpp"
#include "support/program.hpp"

namespace dockbridge::test {

/// A container and a server that is connected to it.
struct Connected {
  Container container;
  Server server;

  explicit Connected(const std::vector<std::string>& options = {"--init"},
                     const std::string& image = "dockbridge-test:slim", const std::vector<std::string>& arguments = {})
      : container(image, options), server(with_name(arguments)) {
    server.initialize();
  }
  [[nodiscard]] std::vector<std::string> with_name(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-c", container.name()});
    return arguments;
  }
};

// Names of the agent's processes in the container.
inline constexpr const char* k_session = "dockbridge-sess";
inline constexpr const char* k_keeper = "dockbridge-keep";
inline constexpr const char* k_screen = "dockbridge-scr";

inline void cancel(Server& server, int id, const std::string& reason = "not needed") {
  server.send(
      {{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}, {"reason", reason}}}});
}

inline json with_key(const std::string& key) {
  return {{"dockbridge/idempotencyKey", key}};
}

inline std::string text_of(const json& result) {
  return field(result, "content", 0, "text").get<std::string>();
}

/// First short id in a reply such as "p3 is running in the background."
inline std::string short_id_in(const std::string& text) {
  std::smatch match;
  REQUIRE_MESSAGE(std::regex_search(text, match, std::regex("\\bp[0-9]+\\b")), text);
  return match.str();
}

inline const json& fields_of(const json& result) {
  return field(result, "structuredContent");
}

/// Error of a failed call. It must have a next step.
inline const json& error_of(const json& result) {
  CHECK(field(result, "isError") == true);
  const json& error = field(fields_of(result), "error");
  CHECK_FALSE(field(error, "nextStep").get<std::string>().empty());
  CHECK(text_of(result).ends_with("\n" + field(error, "nextStep").get<std::string>()));
  return error;
}

/// Calls check_process with the output that was shown before.
inline json check(Server& server, const std::string& process, json more = json::object()) {
  more["processId"] = process;
  more.emplace("all", true);
  return server.call("check_process", std::move(more), seconds(60));
}

inline json control(Server& server, const std::string& process, const std::string& action, json more = json::object()) {
  more["processId"] = process;
  more["action"] = action;
  return server.call("control_process", std::move(more));
}

inline json press(Server& server, const std::string& process, const std::vector<std::string>& keys) {
  return server.call("send_input", {{"processId", process}, {"keys", keys}});
}

inline std::string start_in_background(Server& server, const std::string& command, json more = json::object()) {
  more["background"] = true;
  more["timeout"] = 0;  // do not wait for an immediate end
  const json result = server.execute(command, more);
  CAPTURE(result.dump());
  REQUIRE(field(fields_of(result), "status") == "running");
  return field(fields_of(result), "processId");
}

}  // namespace dockbridge::test
