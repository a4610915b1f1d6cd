#include "mcp/method_groups.hpp"

#include <fmt/format.h>

#include "mcp/call.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr milliseconds k_task_patience{600'000};

ProtocolError task_not_found(const std::string& id) {
  return {k_invalid_params, fmt::format("Task not found: {}", printable_line(id, 100)), nullptr};
}

const ProtocolError& already_ended() {
  static const ProtocolError error{k_invalid_params, "The task has already ended", nullptr};
  return error;
}

/// The reply of tasks/result for a task that has ended.
tl::expected<json, ProtocolError> end_of(TaskState state) {
  if (state.status != TaskStatus::completed) {
    return tl::unexpected<ProtocolError>(state.error);
  }
  state.result["_meta"][k_meta_related_task] = {{"taskId", state.id}};
  return std::move(state.result);
}

json task_result(const ResultFormat& format, const TaskState& state, Revision revision) {
  return is_stateless(revision) ? format.finished(state.to_json(), revision) : state.to_handshake_json();
}

}  // namespace

bool TaskMethods::may_follow_tasks(const Peer& peer, Reply& reply) {
  if (peer.follows_tasks()) {
    return true;
  }
  if (is_stateless(peer.revision)) {
    const ProtocolError error = missing_tasks_capability("This method");
    reply.error(error.code, error.message, error.data);
  } else {
    reply.error(k_method_not_found, "This protocol revision has no tasks");
  }
  return false;
}

std::shared_ptr<Task> TaskMethods::known_task(const Request& request) const {
  return m_client->hub.tasks.find(m_client->caller.owner, text_param(request.params, "taskId").value_or(""));
}

std::shared_ptr<Call> TaskMethods::find_lost(Request& request, const Peer& peer, Reply reply, milliseconds patience,
                                             LostTaskAnswer answer) {
  const std::string id = text_param(request.params, "taskId").value_or("");
  const auto handle = handle_of_task(id);
  LostTasks* lost_tasks = m_server.catalogue.lost_tasks();
  if (lost_tasks == nullptr || !handle) {
    reply.error(k_invalid_params, task_not_found(id).message);
    return nullptr;
  }
  const Representation representation = requested_representation(request.params, m_server.info.representation);
  return std::make_shared<PlainCall>(
      m_client, std::move(request), peer, std::move(reply),
      [&format = m_server.format, id, handle = *handle, lost_tasks, patience, answer = std::move(answer),
       representation, revision = peer.revision](const CallContext& context) -> tl::expected<json, ProtocolError> {
        auto found = lost_tasks->find(handle, patience, context);
        if (!found) {
          return tl::unexpected<ProtocolError>({k_internal_error, found.error().sentence(), nullptr});
        }
        if (!*found) {
          return tl::unexpected<ProtocolError>(task_not_found(id));
        }
        TaskState state{id, k_default_task_ttl, (*found)->created_ms, (*found)->updated_ms, (*found)->status};
        state.tool_failed = (*found)->result.is_error;
        if (state.status == TaskStatus::completed) {
          state.result = format.call_result(std::move((*found)->result), revision, representation);
        } else if (state.status == TaskStatus::cancelled) {
          state.error = cancelled_task_error();
        }
        return answer(std::move(state), {handle, (*found)->runs}, context);
      });
}

std::shared_ptr<Call> TaskMethods::get(Request& request, const Peer& peer, Reply reply) {
  if (!may_follow_tasks(peer, reply)) {
    return nullptr;
  }
  if (const auto task = known_task(request)) {
    reply.result(task_result(m_server.format, task->state(), peer.revision));
    return nullptr;
  }
  return find_lost(request, peer, std::move(reply), milliseconds{0},
                   [&format = m_server.format, revision = peer.revision](const TaskState& state, const LostWork&,
                                                                         const CallContext&) {
                     return task_result(format, state, revision);
                   });
}

std::shared_ptr<Call> TaskMethods::update(Request& request, const Peer& peer, Reply reply) {
  if (!may_follow_tasks(peer, reply)) {
    return nullptr;
  }
  if (const auto task = known_task(request)) {
    const auto responses = request.params.find("inputResponses");
    if (responses != request.params.end() && responses->is_object()) {
      task->update(*responses);
    }
    reply.result(m_server.format.finished(json::object(), peer.revision));
    return nullptr;
  }
  return find_lost(
      request, peer, std::move(reply), milliseconds{0},
      [&format = m_server.format, revision = peer.revision](const TaskState&, const LostWork&, const CallContext&) {
        return format.finished(json::object(), revision);
      });
}

std::shared_ptr<Call> TaskMethods::cancel(Request& request, const Peer& peer, Reply reply) {
  if (!may_follow_tasks(peer, reply)) {
    return nullptr;
  }
  const bool stateless = is_stateless(peer.revision);
  if (const auto task = known_task(request)) {
    if (task->state().ended() && !stateless) {
      reply.error(already_ended().code, already_ended().message);
      return nullptr;
    }
    task->cancel();
    reply.result(stateless ? m_server.format.finished(json::object(), peer.revision) : task->handshake_description());
    return nullptr;
  }
  return find_lost(
      request, peer, std::move(reply), milliseconds{0},
      [&server = m_server, stateless, revision = peer.revision](
          TaskState state, const LostWork& work, const CallContext& context) -> tl::expected<json, ProtocolError> {
        // The task of a silent command counts as completed while the command runs.
        if (state.ended() && !work.runs) {
          return stateless ? tl::expected<json, ProtocolError>(server.format.finished(json::object(), revision))
                           : tl::unexpected<ProtocolError>(already_ended());
        }
        if (const auto cancelled = server.catalogue.lost_tasks()->cancel(work.handle, context); !cancelled) {
          return tl::unexpected<ProtocolError>({k_internal_error, cancelled.error().sentence(), nullptr});
        }
        state.status = TaskStatus::cancelled;
        return stateless ? server.format.finished(json::object(), revision) : state.to_handshake_json();
      });
}

std::shared_ptr<Call> TaskMethods::list(Request& /*request*/, const Peer& peer, Reply reply) {
  if (!may_follow_tasks(peer, reply)) {
    return nullptr;
  }
  json tasks = json::array();
  for (const auto& task : m_client->hub.tasks.list(m_client->caller.owner)) {
    tasks.push_back(task->handshake_description());
  }
  reply.result({{"tasks", std::move(tasks)}});
  return nullptr;
}

std::shared_ptr<Call> TaskMethods::await_result(Request& request, const Peer& peer, Reply reply) {
  if (!may_follow_tasks(peer, reply)) {
    return nullptr;
  }
  static const ProtocolError k_still_runs{k_internal_error, "The task is still running; request again", nullptr};
  const auto task = known_task(request);
  if (!task) {
    return find_lost(request, peer, std::move(reply), k_task_patience,
                     [](TaskState state, const LostWork&, const CallContext&) -> tl::expected<json, ProtocolError> {
                       return state.ended() ? end_of(std::move(state)) : tl::unexpected<ProtocolError>(k_still_runs);
                     });
  }
  return std::make_shared<PlainCall>(
      m_client, std::move(request), peer, std::move(reply),
      [task](const CallContext& context) -> tl::expected<json, ProtocolError> {
        auto end = task->wait(Deadline::after(k_task_patience), context.interruption.token());
        return end ? end_of(std::move(*end)) : tl::unexpected<ProtocolError>(k_still_runs);
      });
}

}  // namespace dockbridge::mcp
