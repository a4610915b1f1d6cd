#include "tools/toolbox.hpp"

#include "tools/argument_names.hpp"
#include "tools/file_report.hpp"

namespace dockbridge::tools {

namespace {

/// Used if every next step of an error names a tool that the caller cannot see.
constexpr const char* k_general_step = "Check the arguments and the state of the sandbox, then call again";

/// Removes from an error the next steps that name a tool which the caller cannot see.
void hide_unlisted_steps(const ToolSelection& listed, mcp::ToolResult& result) {
  const mcp::json& error = result.structured.at("error");
  const std::string step = error.at("nextStep").get<std::string>();
  if (std::string kept = listed.keep_sentences(step); kept != step) {
    mcp::ToolResult plain =
        mcp::error_result({error_code_named(error.at("code").get<std::string>()).value(),
                           error.at("message").get<std::string>(), kept.empty() ? k_general_step : std::move(kept)});
    result.text = std::move(plain.text);
    result.structured["error"]["nextStep"] = plain.structured["error"]["nextStep"];
  }
}

/// Bytes of notices behind a text. A text that an argument allowed to be longer than usual still gets a few.
std::size_t room_for_notices(const std::string& text) {
  constexpr std::size_t k_least = 500;
  return text.size() > k_usual_reply_bytes ? k_least : k_usual_reply_bytes - text.size();
}

void add_notices(const std::shared_ptr<NoticeDelivery>& delivery, mcp::ToolResult& result) {
  if (!delivery || result.input_required || result.protocol_error) {
    return;
  }
  result.notices = delivery->sentences();
  result.on_delivered = [delivery, also = std::move(result.on_delivered)] {
    delivery->confirm();
    if (also) {
      also();
    }
  };
}

}  // namespace

ToolSelection listed_for(const mcp::CallContext& context, const Settings& settings) {
  return context.may_use ? settings.selection.visible_part(context.may_use) : settings.selection;
}

std::string visible_text(const std::string& text, const std::function<bool(const std::string& tool)>& visible) {
  return ToolSelection().visible_part(visible).keep_sentences(text);
}

std::vector<mcp::Tool> all_tools(const SandboxResolver& resolve, const Settings& settings) {
  std::vector plans{execute_command(settings), check_process(settings), send_input(settings), control_process(settings),
                    file_read(settings),       file_write(settings),    file_edit(settings),  file_undo(settings),
                    file_ls(settings),         file_glob(settings),     file_grep(settings)};
  if (settings.host_directories) {
    plans.push_back(file_upload(settings));
    plans.push_back(file_download(settings));
  }
  const auto shown = std::make_shared<ShownCursors>();
  const auto notices = ClientNotices::make();
  std::vector<mcp::Tool> tools;
  for (ToolPlan& plan : plans) {
    if (!settings.selection.contains(plan.description.name)) {
      continue;
    }
    plan.description.description = settings.selection.keep_sentences(plan.description.description);
    plan.description.call = [resolve, settings, shown, notices, call = plan.call,
                             aliases = argument_aliases(plan.description.name)](const mcp::json& values,
                                                                                const mcp::CallContext& context) {
      sandbox::Sandbox& sandbox = resolve(context);
      Arguments arguments(values, aliases);
      const ToolSelection listed = listed_for(context, settings);
      mcp::ToolResult result = call({sandbox, settings, arguments, context, listed, Clock::now(), shown, notices});
      if (result.is_error && result.structured.contains("error")) {
        hide_unlisted_steps(listed, result);
      }
      const auto delivery = notices->take({context.owner, context.client}, context.correlation_id, sandbox,
                                          room_for_notices(result.text));
      if (!mcp::forbids_reply(context.interruption.reason())) {
        add_notices(delivery, result);
      }
      result.subject = sandbox.container_name();
      return result;
    };
    tools.push_back(std::move(plan.description));
  }
  return tools;
}

}  // namespace dockbridge::tools
