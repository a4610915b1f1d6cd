#include "mcp/method_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/call.hpp"
#include "mcp/list_reply.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_completions = 100;

}  // namespace

std::shared_ptr<Call> PromptMethods::list(Request& request, const Peer& peer, Reply reply) {
  answer_list(reply, m_server.lists.prompts(peer.revision, requested_cursor(request), m_client->visibility.prompts()));
  return nullptr;
}

std::shared_ptr<Call> PromptMethods::get(Request& request, const Peer& peer, Reply reply) {
  const std::string name = text_param(request.params, "name").value_or("");
  const Prompt* prompt = m_client->visibility.prompt(name);
  if (prompt == nullptr) {
    reply.error(k_invalid_params, "Prompt not found: " + printable_line(name, 100));
    return nullptr;
  }
  const auto given = request.params.find("arguments");
  json arguments = given == request.params.end() || given->is_null() ? json::object() : *given;
  const bool all_text = arguments.is_object() && std::all_of(arguments.begin(), arguments.end(),
                                                             [](const json& value) { return value.is_string(); });
  if (!all_text) {
    reply.error(k_invalid_params, "'arguments' must be an object of strings");
    return nullptr;
  }
  for (const PromptArgument& argument : prompt->arguments) {
    if (argument.required && !arguments.contains(argument.name)) {
      reply.error(k_invalid_params, fmt::format("Missing prompt argument: {}", argument.name));
      return nullptr;
    }
  }
  return std::make_shared<PlainCall>(m_client, std::move(request), peer, std::move(reply),
                                     [&format = m_server.format, prompt, arguments = std::move(arguments),
                                      revision = peer.revision](const CallContext& context) {
                                       return format.prompt_result(*prompt, prompt->get(arguments, context), revision);
                                     });
}

std::shared_ptr<Call> PromptMethods::complete(Request& request, const Peer& peer, Reply reply) {
  const auto ref = request.params.find("ref");
  const auto argument = request.params.find("argument");
  const bool usable = ref != request.params.end() && ref->is_object() && argument != request.params.end() &&
                      argument->is_object() && argument->contains("name") && argument->at("name").is_string() &&
                      argument->contains("value") && argument->at("value").is_string();
  if (!usable) {
    reply.error(k_invalid_params, "completion/complete needs 'ref' and 'argument' with 'name' and 'value'");
    return nullptr;
  }
  const std::string name = argument->at("name").get<std::string>();
  Completer completer;
  if (const Prompt* prompt = m_client->visibility.prompt(text_param(*ref, "name").value_or(""))) {
    for (const PromptArgument& known : prompt->arguments) {
      if (known.name == name && (known.complete_tool.empty() || m_client->visibility.may_use(known.complete_tool))) {
        completer = known.complete;
      }
    }
  } else if (m_server.catalogue.resources() != nullptr) {
    const std::string uri = text_param(*ref, "uri").value_or("");
    for (const ResourceTemplate& known : m_server.catalogue.resources()->templates()) {
      const bool allowed = known.complete_tool.empty() ? m_client->visibility.may_read(uri)
                                                       : m_client->visibility.may_use(known.complete_tool);
      if (known.uri_template == uri && known.complete.contains(name) && allowed) {
        completer = known.complete.at(name);
      }
    }
  }
  return std::make_shared<PlainCall>(
      m_client, std::move(request), peer, std::move(reply),
      [&format = m_server.format, completer, typed = argument->at("value").get<std::string>(),
       revision = peer.revision](const CallContext& context) {
        std::vector<std::string> values = completer ? completer(typed, context) : std::vector<std::string>();
        const std::size_t total = values.size();
        values.resize(std::min(total, k_max_completions));
        return format.finished(
            {{"completion", {{"values", values}, {"total", total}, {"hasMore", total > values.size()}}}}, revision);
      });
}

}  // namespace dockbridge::mcp
