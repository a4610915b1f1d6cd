#include "mcp/method_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/call.hpp"
#include "mcp/list_reply.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

std::vector<std::string_view> names_of_tools(const Catalogue& catalogue, const Caller& caller) {
  std::vector<std::string_view> names;
  for (const Tool& tool : catalogue.tools()) {
    if (caller.may_use(tool.name)) {
      names.emplace_back(tool.name);
    }
  }
  return names;
}

}  // namespace

std::shared_ptr<Call> ToolMethods::list(Request& request, const Peer& peer, Reply reply) {
  const json cursor = requested_cursor(request);
  const Representation representation = requested_representation(request.params, m_server.info.representation);
  if (!m_client->visibility.is_limited() && cursor.is_null()) {
    reply.result(m_server.lists.tools_text(peer.revision, representation));
    return nullptr;
  }
  answer_list(reply, m_server.lists.tools(peer.revision, representation, cursor, m_client->visibility.tools()));
  return nullptr;
}

std::shared_ptr<Call> ToolMethods::call(Request& request, const Peer& peer, Reply reply) {
  const auto name = text_param(request.params, "name");
  if (!name) {
    reply.error(k_invalid_params, "tools/call needs 'name', a string");
    return nullptr;
  }
  const Tool* tool = m_client->visibility.may_use(*name) ? m_server.catalogue.find_tool(*name) : nullptr;
  if (tool == nullptr) {
    reply.error(k_invalid_params, fmt::format("Tool not found: {}. Available: {}", printable_line(*name, 100),
                                              fmt::join(names_of_tools(m_server.catalogue, m_client->caller), ", ")));
    return nullptr;
  }
  const auto given = request.params.find("arguments");
  json arguments = given == request.params.end() || given->is_null() ? json::object() : std::move(*given);
  if (!arguments.is_object()) {
    reply.error(k_invalid_params, "'arguments' must be an object");
    return nullptr;
  }
  if (m_client->uses_id(request.id)) {
    reply.error(k_invalid_request, "A request with this id is still running. Use a new id");
    return nullptr;
  }
  if (tool->task_support == TaskSupport::required && is_stateless(peer.revision) && !peer.follows_tasks()) {
    const ProtocolError error = missing_tasks_capability("This tool");
    reply.error(error.code, error.message, error.data);
    return nullptr;
  }
  const auto task = request.params.find("task");
  const bool as_task = task != request.params.end() && task->is_object() && peer.revision == Revision::v2025_11_25 &&
                       tool->task_support != TaskSupport::forbidden;
  std::optional<milliseconds> ttl;
  if (as_task && task->contains("ttl") && task->at("ttl").is_number_integer()) {
    ttl = milliseconds(std::clamp<std::int64_t>(task->at("ttl").get<std::int64_t>(), 0, 1'000'000'000));
  }
  auto made =
      std::make_shared<ToolCall>(m_client, std::move(request), peer, std::move(reply), *tool, std::move(arguments));
  if (as_task) {
    made->start_as_task(ttl);
  }
  return made;
}

}  // namespace dockbridge::mcp
