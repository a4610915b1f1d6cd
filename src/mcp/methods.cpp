// What a conversation does for each method.

#include <fmt/format.h>

#include <algorithm>

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_completions = 100;

json cursor_of(const Request& request) {
  const auto found = request.params.find("cursor");
  return found == request.params.end() ? json(nullptr) : *found;
}

void answer_list(Reply& reply, Result<json> result) {
  if (result) {
    reply.result(std::move(*result));
  } else {
    reply.error(k_invalid_params, result.error().message);
  }
}

std::vector<std::string_view> names_of_tools(const Server& server, const Caller& caller) {
  std::vector<std::string_view> names;
  for (const Tool& tool : server.tools()) {
    if (caller.may_use(tool.name)) {
      names.emplace_back(tool.name);
    }
  }
  return names;
}

}  // namespace

const std::map<std::string_view, Conversation::Method>& Conversation::methods() {
  static const std::map<std::string_view, Method> all = {
      {"initialize", {true, false, &Conversation::initialize}},
      {"ping", {true, false, &Conversation::ping}},
      {"server/discover", {false, true, &Conversation::discover}},
      {"logging/setLevel", {true, false, &Conversation::set_log_level}},
      {"tools/list", {true, true, &Conversation::list_tools}},
      {"tools/call", {true, true, &Conversation::call_tool}},
      {"prompts/list", {true, true, &Conversation::list_prompts}},
      {"prompts/get", {true, true, &Conversation::get_prompt}},
      {"resources/list", {true, true, &Conversation::list_resources}},
      {"resources/templates/list", {true, true, &Conversation::list_templates}},
      {"resources/read", {true, true, &Conversation::read_resource}},
      {"resources/subscribe", {true, false, &Conversation::subscribe}},
      {"resources/unsubscribe", {true, false, &Conversation::unsubscribe}},
      {"subscriptions/listen", {false, true, &Conversation::listen}},
      {"completion/complete", {true, true, &Conversation::complete}},
      {"skills/list", {false, true, &Conversation::list_skills}},
      {"skills/get", {false, true, &Conversation::get_skill}},
      {"tasks/get", {true, true, &Conversation::get_task}},
      {"tasks/update", {false, true, &Conversation::update_task}},
      {"tasks/cancel", {true, true, &Conversation::cancel_task}},
      {"tasks/list", {true, false, &Conversation::list_tasks}},
      {"tasks/result", {true, false, &Conversation::await_task}},
  };
  return all;
}

std::shared_ptr<Call> Conversation::initialize(Request& request, const Peer& /*peer*/, Reply reply) {
  const auto version = request.params.find("protocolVersion");
  if (version == request.params.end() || !version->is_string()) {
    reply.error(k_invalid_params, "initialize needs 'protocolVersion', a string");
    return nullptr;
  }
  const Revision revision = negotiate(*version);
  const auto capabilities = request.params.find("capabilities");
  if (capabilities != request.params.end() && capabilities->is_object() && !usable_capabilities(*capabilities)) {
    reply.error(k_invalid_params, "'capabilities' is too large");
    return nullptr;
  }
  auto ticket = m_hub.bulletin.subscribe([this](const Notice& notice) { hear(notice); });
  {
    const std::lock_guard lock(m_mutex);
    m_negotiated = revision;
    if (capabilities != request.params.end() && capabilities->is_object()) {
      m_capabilities = *capabilities;
    }
    if (const auto client = request.params.find("clientInfo"); client != request.params.end()) {
      m_client_name = name_of_client(*client);
    }
    m_ticket.swap(ticket);
  }
  reply.result(m_server.initialize_result(revision, visible_tools()));
  return nullptr;
}

std::shared_ptr<Call> Conversation::ping(Request& /*request*/, const Peer& /*peer*/, Reply reply) {
  reply.result(json::object());
  return nullptr;
}

std::shared_ptr<Call> Conversation::discover(Request& /*request*/, const Peer& /*peer*/, Reply reply) {
  reply.result(m_server.discover_result(visible_tools()));
  return nullptr;
}

std::shared_ptr<Call> Conversation::set_log_level(Request& request, const Peer& /*peer*/, Reply reply) {
  const auto severity = log_severity(text_param(request.params, "level").value_or(""));
  if (!severity) {
    reply.error(k_invalid_params,
                "'level' must be one of debug, info, notice, warning, error, critical, alert, "
                "emergency");
    return nullptr;
  }
  {
    const std::lock_guard lock(m_mutex);
    m_log_from = severity;
  }
  reply.result(json::object());
  return nullptr;
}

std::shared_ptr<Call> Conversation::list_tools(Request& request, const Peer& peer, Reply reply) {
  const json cursor = cursor_of(request);
  const Representation representation = requested_representation(request.params, m_server.info().representation);
  if (!m_caller.tools && cursor.is_null()) {
    reply.result(m_server.tools_list_text(peer.revision, representation));
    return nullptr;
  }
  answer_list(reply, m_server.tools_list_result(peer.revision, representation, cursor, visible_tools()));
  return nullptr;
}

std::shared_ptr<Call> Conversation::call_tool(Request& request, const Peer& peer, Reply reply) {
  const auto name = text_param(request.params, "name");
  if (!name) {
    reply.error(k_invalid_params, "tools/call needs 'name', a string");
    return nullptr;
  }
  const Tool* tool = may_use(*name) ? m_server.find_tool(*name) : nullptr;
  if (tool == nullptr) {
    reply.error(k_invalid_params, fmt::format("Tool not found: {}. Available: {}", printable_line(*name, 100),
                                              fmt::join(names_of_tools(m_server, m_caller), ", ")));
    return nullptr;
  }
  const auto given = request.params.find("arguments");
  json arguments = given == request.params.end() || given->is_null() ? json::object() : std::move(*given);
  if (!arguments.is_object()) {
    reply.error(k_invalid_params, "'arguments' must be an object");
    return nullptr;
  }
  if (is_running(request.id)) {
    reply.error(k_invalid_request, "A request with this id is still running. Use a new id");
    return nullptr;
  }
  if (tool->task_support == TaskSupport::required && is_stateless(peer.revision) && !peer.follows_tasks()) {
    reply.error(k_missing_capability, "This tool needs a client with the tasks capability",
                {{"requiredCapabilities", {{"extensions", {{k_tasks_extension, json::object()}}}}}});
    return nullptr;
  }
  const auto task = request.params.find("task");
  const bool as_task = task != request.params.end() && task->is_object() && peer.revision == Revision::v2025_11_25 &&
                       tool->task_support != TaskSupport::forbidden;
  std::optional<milliseconds> ttl;
  if (as_task && task->contains("ttl") && task->at("ttl").is_number_integer()) {
    ttl = milliseconds(std::clamp<std::int64_t>(task->at("ttl").get<std::int64_t>(), 0, 1'000'000'000));
  }
  auto call = std::make_shared<ToolCall>(shared_from_this(), std::move(request), peer, std::move(reply), *tool,
                                         std::move(arguments));
  if (as_task) {
    call->start_as_task(ttl);
  }
  return call;
}

std::shared_ptr<Call> Conversation::list_prompts(Request& request, const Peer& peer, Reply reply) {
  const auto visible = [this](const std::string& name) { return visible_prompt(name) != nullptr; };
  answer_list(reply, m_server.prompts_list_result(peer.revision, cursor_of(request),
                                                  m_caller.tools ? Visible(visible) : Visible()));
  return nullptr;
}

const Prompt* Conversation::visible_prompt(const std::string& name) const {
  const Prompt* prompt = m_server.find_prompt(name);
  const bool may_use_all = prompt != nullptr && std::all_of(prompt->tools.begin(), prompt->tools.end(),
                                                            [&](const auto& tool) { return may_use(tool); });
  return may_use_all ? prompt : nullptr;
}

std::shared_ptr<Call> Conversation::get_prompt(Request& request, const Peer& peer, Reply reply) {
  const std::string name = text_param(request.params, "name").value_or("");
  const Prompt* prompt = visible_prompt(name);
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
  return std::make_shared<PlainCall>(
      shared_from_this(), std::move(request), peer, std::move(reply),
      [this, prompt, arguments = std::move(arguments), revision = peer.revision](const CallContext& context) {
        return m_server.prompt_result(*prompt, prompt->get(arguments, context), revision);
      });
}

std::shared_ptr<Call> Conversation::list_resources(Request& request, const Peer& peer, Reply reply) {
  if (m_server.resources() == nullptr) {
    reply.error(k_method_not_found, "This server has no resources");
    return nullptr;
  }
  answer_list(reply, m_server.resources_list_result(peer.revision, cursor_of(request), visible_uris()));
  return nullptr;
}

std::shared_ptr<Call> Conversation::list_templates(Request& request, const Peer& peer, Reply reply) {
  if (m_server.resources() == nullptr) {
    reply.error(k_method_not_found, "This server has no resources");
    return nullptr;
  }
  answer_list(reply, m_server.templates_list_result(peer.revision, cursor_of(request), visible_uris()));
  return nullptr;
}

std::shared_ptr<Call> Conversation::read_resource(Request& request, const Peer& peer, Reply reply) {
  const auto uri = text_param(request.params, "uri");
  if (m_server.resources() == nullptr || !uri) {
    reply.error(uri ? k_method_not_found : k_invalid_params,
                uri ? "This server has no resources" : "resources/read needs 'uri', a string");
    return nullptr;
  }
  if (const Skill* skill = is_stateless(peer.revision) ? visible_skill(*uri) : nullptr) {
    reply.result(m_server.read_result(skill_contents(*skill), peer.revision));
    return nullptr;
  }
  return std::make_shared<PlainCall>(
      shared_from_this(), std::move(request), peer, std::move(reply),
      [this, uri = *uri, revision = peer.revision](const CallContext& context) -> tl::expected<json, ProtocolError> {
        auto contents = may_read(uri) ? m_server.resources()->read(uri, context)
                                      : fail(ErrorCode::resource_not_found,
                                             fmt::format("Resource not found: {}", printable_line(uri, 200)));
        if (contents) {
          return m_server.read_result(std::move(*contents), revision);
        }
        const bool unknown = contents.error().code == ErrorCode::resource_not_found;
        const int not_found = is_stateless(revision) ? k_invalid_params : k_handshake_resource_not_found;
        const std::string step = m_server.visible_text(std::string(contents.error().step()),
                                                       [this](const std::string& tool) { return may_use(tool); });
        return tl::unexpected<ProtocolError>({unknown ? not_found : static_cast<int>(k_internal_error),
                                              contents.error().message + (step.empty() ? "" : ". " + step),
                                              {{"uri", uri}}});
      });
}

std::shared_ptr<Call> Conversation::complete(Request& request, const Peer& peer, Reply reply) {
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
  if (const Prompt* prompt = visible_prompt(text_param(*ref, "name").value_or(""))) {
    for (const PromptArgument& known : prompt->arguments) {
      if (known.name == name && (known.complete_tool.empty() || may_use(known.complete_tool))) {
        completer = known.complete;
      }
    }
  } else if (m_server.resources() != nullptr) {
    const std::string uri = text_param(*ref, "uri").value_or("");
    for (const ResourceTemplate& known : m_server.resources()->templates()) {
      const bool allowed = known.complete_tool.empty() ? may_read(uri) : may_use(known.complete_tool);
      if (known.uri_template == uri && known.complete.contains(name) && allowed) {
        completer = known.complete.at(name);
      }
    }
  }
  return std::make_shared<PlainCall>(
      shared_from_this(), std::move(request), peer, std::move(reply),
      [this, completer, typed = argument->at("value").get<std::string>(),
       revision = peer.revision](const CallContext& context) {
        std::vector<std::string> values = completer ? completer(typed, context) : std::vector<std::string>();
        const std::size_t total = values.size();
        values.resize(std::min(total, k_max_completions));
        return m_server.finished(
            {{"completion", {{"values", values}, {"total", total}, {"hasMore", total > values.size()}}}}, revision);
      });
}

}  // namespace dockbridge::mcp
