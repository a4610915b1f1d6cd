#include "tools/command_tasks.hpp"

#include <algorithm>

#include "tools/tool_table.hpp"

namespace dockbridge::tools {

namespace {

using mcp::LostTask;
using mcp::TaskStatus;
using sandbox::Snapshot;

sandbox::CallLimit limit_of(const mcp::CallContext& context, milliseconds waits = {}) {
  return {context.interruption.token(), Deadline::after(waits + k_call_patience)};
}

}  // namespace

CommandTasks::CommandTasks(sandbox::Sandbox& sandbox, Settings settings)
    : m_sandbox(sandbox), m_settings(std::move(settings)) {
  m_settings.rationale_required = false;
}

milliseconds CommandTasks::wait_left(const wire::ProcessState& state) const {
  const bool returned = !state.running() || state.waits_for_input == wire::WaitsForInput::yes ||
                        milliseconds(state.idle_ms) >= m_settings.inactivity_timeout;
  const milliseconds ran{std::max<std::int64_t>(unix_milliseconds_now() - state.started_at_ms, 0)};
  return returned ? milliseconds{0} : std::max(m_settings.max_wait - ran, milliseconds{0});
}

Result<std::optional<LostTask>> CommandTasks::find(const std::string& handle, milliseconds patience,
                                                   const mcp::CallContext& context) {
  const auto id = m_sandbox.processes().new_process_id(context.interruption.token(), handle);
  if (!id) {
    return fail(id.error());
  }
  auto found = m_sandbox.processes().find(*id, context.owner, limit_of(context));
  if (const milliseconds waits = found ? std::min(patience, wait_left(found->state)) : milliseconds{0};
      waits > milliseconds{0}) {
    const wire::WaitCondition until{.idle = m_settings.inactivity_timeout, .input = true};
    found = m_sandbox.processes().wait(*id, waits, until, limit_of(context, waits));
  }
  if (!found) {
    const bool unknown =
        found.error().code == ErrorCode::no_such_process || found.error().code == ErrorCode::process_expired;
    return unknown ? Result<std::optional<LostTask>>(std::nullopt) : fail(found.error());
  }
  const wire::ProcessState& state = found->state;
  LostTask task;
  task.created_ms = state.started_at_ms;
  task.runs = state.running();
  task.updated_ms =
      state.running() ? unix_milliseconds_now() - static_cast<std::int64_t>(state.idle_ms) : state.ended_at_ms;
  if (wait_left(state) > milliseconds{0}) {
    return task;
  }
  if (!state.running() && state.cause == wire::Cause::cancelled) {
    task.status = TaskStatus::cancelled;
    return task;
  }
  const mcp::json values = {{"processId", *id}};
  Arguments arguments(values);
  task.status = TaskStatus::completed;
  const ToolSelection listed = listed_for(context, m_settings);
  task.result = k_check_process.call({m_sandbox, m_settings, arguments, context, listed});
  return task;
}

Result<void> CommandTasks::cancel(const std::string& handle, const mcp::CallContext& context) {
  const auto id = m_sandbox.processes().new_process_id(context.interruption.token(), handle);
  if (!id) {
    return fail(id.error());
  }
  if (const auto found = m_sandbox.processes().find(*id, context.owner, limit_of(context)); !found) {
    return fail(found.error());
  }
  return m_sandbox.control().end(*id, wire::Cause::cancelled, sandbox::k_cancel_grace, limit_of(context));
}

}  // namespace dockbridge::tools
