// What a conversation does for the methods of tasks, in both forms.

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"

namespace dockbridge::mcp {

namespace {

constexpr milliseconds k_task_patience{600'000};

}  // namespace

std::shared_ptr<Task> Conversation::named_task(const Request& request, const Peer& peer, Reply& reply) {
  if (!peer.follows_tasks()) {
    if (is_stateless(peer.revision)) {
      reply.error(k_missing_capability, "this method needs a client that can follow tasks",
                  {{"requiredCapabilities", {{"extensions", {{k_tasks_extension, json::object()}}}}}});
    } else {
      reply.error(k_method_not_found, "this revision has no tasks");
    }
    return nullptr;
  }
  auto task = m_hub.tasks.find(m_caller.owner, text_param(request.params, "taskId").value_or(""));
  if (!task) {
    reply.error(k_invalid_params, "there is no such task");
  }
  return task;
}

std::shared_ptr<Call> Conversation::get_task(Request& request, const Peer& peer, Reply reply) {
  if (const auto task = named_task(request, peer, reply)) {
    reply.result(is_stateless(peer.revision) ? m_server.finished(task->description(), peer.revision)
                                             : task->handshake_description());
  }
  return nullptr;
}

std::shared_ptr<Call> Conversation::update_task(Request& request, const Peer& peer, Reply reply) {
  if (const auto task = named_task(request, peer, reply)) {
    const auto responses = request.params.find("inputResponses");
    if (responses != request.params.end() && responses->is_object()) {
      task->update(*responses);
    }
    reply.result(m_server.finished(json::object(), peer.revision));
  }
  return nullptr;
}

std::shared_ptr<Call> Conversation::cancel_task(Request& request, const Peer& peer, Reply reply) {
  const auto task = named_task(request, peer, reply);
  if (!task) {
    return nullptr;
  }
  const Task::Status before = task->status();
  const bool over = before != Task::Status::working && before != Task::Status::input_required;
  if (over && !is_stateless(peer.revision)) {
    reply.error(k_invalid_params, "the task has ended already");
    return nullptr;
  }
  task->cancel();
  reply.result(is_stateless(peer.revision) ? m_server.finished(json::object(), peer.revision)
                                           : task->handshake_description());
  return nullptr;
}

std::shared_ptr<Call> Conversation::list_tasks(Request& /*request*/, const Peer& peer, Reply reply) {
  if (!peer.follows_tasks()) {
    reply.error(k_method_not_found, "this revision has no tasks");
    return nullptr;
  }
  json tasks = json::array();
  for (const auto& task : m_hub.tasks.list(m_caller.owner)) {
    tasks.push_back(task->handshake_description());
  }
  reply.result({{"tasks", std::move(tasks)}});
  return nullptr;
}

std::shared_ptr<Call> Conversation::await_task(Request& request, const Peer& peer, Reply reply) {
  const auto task = named_task(request, peer, reply);
  if (!task) {
    return nullptr;
  }
  return std::make_shared<PlainCall>(
      shared_from_this(), std::move(request), peer, std::move(reply),
      [task](const CallContext& context) -> tl::expected<json, ProtocolError> {
        auto end = task->wait(Deadline::after(k_task_patience), context.interruption.token());
        if (!end) {
          return tl::unexpected<ProtocolError>({k_internal_error, "the task still runs; ask again", nullptr});
        }
        if (!end->result) {
          return tl::unexpected<ProtocolError>(end->error);
        }
        (*end->result)["_meta"][k_meta_related_task] = {{"taskId", task->id()}};
        return std::move(*end->result);
      });
}

}  // namespace dockbridge::mcp
