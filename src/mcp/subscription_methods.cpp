#include "mcp/method_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/call.hpp"

namespace dockbridge::mcp {

namespace {

bool wants(const json& filter, const char* name) {
  const auto found = filter.find(name);
  return found != filter.end() && found->is_boolean() && found->get<bool>();
}

std::set<std::string> texts(const json& filter, const char* name, std::size_t limit) {
  std::set<std::string> found;
  const auto list = filter.find(name);
  for (std::size_t i = 0; list != filter.end() && list->is_array() && i < std::min(list->size(), limit); ++i) {
    if (list->at(i).is_string()) {
      found.insert(list->at(i).get<std::string>());
    }
  }
  return found;
}

/// Notices that a stateless client has requested, and their messages.
struct Filter {
  json id;
  std::string owner;
  bool tools = false;
  bool prompts = false;
  bool resources = false;
  std::set<std::string> uris;
  std::set<std::string> tasks;

  [[nodiscard]] json message_for(const Notice& notice) const {
    const auto made = [&](const char* method, json params) {
      params["_meta"][k_meta_subscription] = id;
      return notification_message(method, std::move(params));
    };
    const bool mine = notice.owner.empty() || notice.owner == owner;
    switch (notice.kind) {
      case Notice::Kind::tools_changed:
        return tools ? made("notifications/tools/list_changed", json::object()) : json();
      case Notice::Kind::prompts_changed:
        return prompts ? made("notifications/prompts/list_changed", json::object()) : json();
      case Notice::Kind::resources_changed:
        return resources ? made("notifications/resources/list_changed", json::object()) : json();
      case Notice::Kind::resource_updated:
        return mine && uris.contains(notice.subject)
                   ? made("notifications/resources/updated", {{"uri", notice.subject}})
                   : json();
      case Notice::Kind::task_changed:
        return mine && tasks.contains(notice.subject) ? made("notifications/tasks", notice.task) : json();
    }
    return {};
  }
};

}  // namespace

std::shared_ptr<Call> SubscriptionMethods::subscribe(Request& request, const Peer& /*peer*/, Reply reply) {
  const auto uri = text_param(request.params, "uri");
  auto watch = uri && m_client->visibility.may_read(*uri)
                   ? m_server.catalogue.resources()->watch(*uri, m_client->caller.owner)
                   : nullptr;
  if (!watch) {
    reply.error(k_invalid_params, "Cannot subscribe: resource not found, or too many subscriptions");
    return nullptr;
  }
  if (m_client->subscriptions.add(*uri, std::move(watch))) {
    reply.result(json::object());
  } else {
    reply.error(k_invalid_request,
                fmt::format("Too many subscriptions: the limit is {} resources for each client", k_max_watched));
  }
  return nullptr;
}

std::shared_ptr<Call> SubscriptionMethods::unsubscribe(Request& request, const Peer& /*peer*/, Reply reply) {
  if (const auto uri = text_param(request.params, "uri")) {
    m_client->subscriptions.remove(*uri);
  }
  reply.result(json::object());
  return nullptr;
}

std::shared_ptr<Call> SubscriptionMethods::listen(Request& request, const Peer& peer, Reply reply) {
  const auto asked = request.params.find("notifications");
  if (asked == request.params.end() || !asked->is_object()) {
    reply.error(k_invalid_params, "subscriptions/listen needs 'notifications', an object");
    return nullptr;
  }
  const json& id = request.id;
  if (m_client->uses_id(id) || m_client->listeners.is_full()) {
    reply.error(k_invalid_request, fmt::format("Too many subscriptions (limit {}), or the request id is in use",
                                               Listeners::k_max_listeners));
    return nullptr;
  }
  Filter filter{id, m_client->caller.owner, false, false, false, {}, {}};
  json agreed = json::object();
  if (m_server.info.announces_lists) {
    for (const auto& [name, flag] :
         {std::pair{"toolsListChanged", &filter.tools}, std::pair{"promptsListChanged", &filter.prompts},
          std::pair{"resourcesListChanged", &filter.resources}}) {
      if (wants(*asked, name)) {
        *flag = true;
        agreed[name] = true;
      }
    }
  }
  std::vector<std::shared_ptr<void>> watches;
  for (const std::string& uri : texts(*asked, "resourceSubscriptions", k_max_watched)) {
    auto watch = m_client->visibility.may_read(uri) ? m_server.catalogue.resources()->watch(uri, m_client->caller.owner)
                                                    : nullptr;
    if (watch) {
      watches.push_back(std::move(watch));
      filter.uris.insert(uri);
      agreed["resourceSubscriptions"].push_back(uri);
    }
  }
  if (peer.follows_tasks()) {
    for (const std::string& task : texts(*asked, "taskIds", k_max_watched)) {
      if (m_client->hub.tasks.find(m_client->caller.owner, task)) {
        filter.tasks.insert(task);
        agreed["taskIds"].push_back(task);
      }
    }
  }
  const auto sink = reply.sink();
  sink->send(notification_message("notifications/subscriptions/acknowledged",
                                  {{"_meta", {{k_meta_subscription, id}}}, {"notifications", std::move(agreed)}}));
  auto ticket = m_client->hub.bulletin.subscribe([sink, filter = std::move(filter)](const Notice& notice) {
    if (const json message = filter.message_for(notice); !message.is_null()) {
      sink->send(message);
    }
  });
  m_client->listeners.add(id, {std::move(reply), std::move(watches), std::move(ticket)});
  return nullptr;
}

}  // namespace dockbridge::mcp
