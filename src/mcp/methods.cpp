#include "mcp/methods.hpp"

#include <map>

#include "mcp/call.hpp"
#include "mcp/method_groups.hpp"

namespace dockbridge::mcp {

namespace {

/// The revisions that have a method.
enum class Era { handshake, stateless, both };

struct Method {
  Era era;
  MethodHandler handler;
};

template <class Group>
using Handler = std::shared_ptr<Call> (Group::*)(Request& request, const Peer& peer, Reply reply);

template <class Group, Handler<Group> handler>
std::shared_ptr<Call> serve(const ClientPtr& client, Request& request, const Peer& peer, Reply reply) {
  return (Group(client).*handler)(request, peer, std::move(reply));
}

const std::map<std::string_view, Method>& methods() {
  static const std::map<std::string_view, Method> all = {
      {"initialize", {Era::handshake, serve<SessionMethods, &SessionMethods::initialize>}},
      {"ping", {Era::handshake, serve<SessionMethods, &SessionMethods::ping>}},
      {"server/discover", {Era::stateless, serve<SessionMethods, &SessionMethods::discover>}},
      {"logging/setLevel", {Era::handshake, serve<SessionMethods, &SessionMethods::set_log_level>}},
      {"tools/list", {Era::both, serve<ToolMethods, &ToolMethods::list>}},
      {"tools/call", {Era::both, serve<ToolMethods, &ToolMethods::call>}},
      {"prompts/list", {Era::both, serve<PromptMethods, &PromptMethods::list>}},
      {"prompts/get", {Era::both, serve<PromptMethods, &PromptMethods::get>}},
      {"completion/complete", {Era::both, serve<PromptMethods, &PromptMethods::complete>}},
      {"resources/list", {Era::both, serve<ResourceMethods, &ResourceMethods::list>}},
      {"resources/templates/list", {Era::both, serve<ResourceMethods, &ResourceMethods::list_templates>}},
      {"resources/read", {Era::both, serve<ResourceMethods, &ResourceMethods::read>}},
      {"resources/subscribe", {Era::handshake, serve<SubscriptionMethods, &SubscriptionMethods::subscribe>}},
      {"resources/unsubscribe", {Era::handshake, serve<SubscriptionMethods, &SubscriptionMethods::unsubscribe>}},
      {"subscriptions/listen", {Era::stateless, serve<SubscriptionMethods, &SubscriptionMethods::listen>}},
      {"skills/list", {Era::stateless, serve<SkillMethods, &SkillMethods::list>}},
      {"skills/get", {Era::stateless, serve<SkillMethods, &SkillMethods::get>}},
      {"tasks/get", {Era::both, serve<TaskMethods, &TaskMethods::get>}},
      {"tasks/update", {Era::stateless, serve<TaskMethods, &TaskMethods::update>}},
      {"tasks/cancel", {Era::both, serve<TaskMethods, &TaskMethods::cancel>}},
      {"tasks/list", {Era::handshake, serve<TaskMethods, &TaskMethods::list>}},
      {"tasks/result", {Era::handshake, serve<TaskMethods, &TaskMethods::await_result>}},
  };
  return all;
}

}  // namespace

MethodHandler find_method(std::string_view name, Revision revision) {
  const auto found = methods().find(name);
  const Era wrong = is_stateless(revision) ? Era::handshake : Era::stateless;
  return found == methods().end() || found->second.era == wrong ? nullptr : found->second.handler;
}

}  // namespace dockbridge::mcp
