// Sends arbitrary messages on one connection. The conversation continues, and answers no request twice.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;

namespace {

Tool echo() {
  Tool tool;
  tool.name = "echo";
  tool.input_schema = {{"type", "object"}};
  tool.task_support = TaskSupport::optional;
  tool.call = [](const json& arguments, const CallContext& context) {
    context.report_progress("begun");
    return ToolResult{arguments.dump(), arguments};
  };
  return tool;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Server server({"fuzz", "Fuzz", "1", ""}, {{echo()}});
  static Log log(-1, LogLevel::off, LogFormat::text);
  Hub hub(server, log);
  const auto sink = std::make_shared<DirectSink>([](const json& message) {
    if (parse_json(dump(message)).index() != 0) {
      std::abort();  // a message that was sent is malformed
    }
    return true;
  });
  const auto conversation = Conversation::begin(hub, {}, sink);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    for (const auto& call : conversation->receive(rest.substr(0, end))) {
      call->make();
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  conversation->end_listening();
  return 0;
}
