#include "tools/toolbox.hpp"

#include "tools/argument_names.hpp"
#include "tools/compat_tools.hpp"
#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"

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

/// Bytes of notices after a text. A text that an argument made longer than usual still gets a few.
std::size_t room_for_notices(const std::string& text) {
  constexpr std::size_t k_min = 500;
  return text.size() > k_default_reply_bytes ? k_min : k_default_reply_bytes - text.size();
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

/// The entry of a tool in the list, without a handler.
mcp::Tool describe(const ToolRow& row, const Settings& settings) {
  const bool is_match_guard = settings.match_is_read && row.match_guard_description != nullptr;
  mcp::Tool tool;
  tool.name = row.name;
  tool.title = row.title;
  tool.description = settings.selection.keep_sentences(is_match_guard ? row.match_guard_description : row.description);
  tool.input_schema = row.code->input_schema(settings);
  tool.output_schema = row.code->output_schema();
  tool.meta = client_meta(row.always_load, row.max_result_chars);
  tool.annotations = row.annotations;
  tool.task_support = row.task_support;
  return tool;
}

}  // namespace

ToolSelection listed_for(const mcp::CallContext& context, const Settings& settings) {
  return context.may_use ? settings.selection.visible_part(context.may_use) : settings.selection;
}

std::string visible_text(const std::string& text, const std::function<bool(const std::string& tool)>& visible) {
  return ToolSelection().visible_part(visible).keep_sentences(text);
}

std::vector<mcp::Tool> all_tools(const SandboxResolver& resolve, const Settings& settings) {
  const auto shown = std::make_shared<ShownCursors>();
  const auto notices = ClientNotices::make();
  std::vector<mcp::Tool> tools;
  const auto add = [&](const ToolRow& row) {
    mcp::Tool tool = describe(row, settings);
    tool.call = [resolve, settings, shown, notices, call = row.code->call, aliases = argument_aliases(row.name)](
                    const mcp::json& values, const mcp::CallContext& context) {
      sandbox::Sandbox& sandbox = resolve(context);
      Arguments arguments(values, aliases);
      const ToolSelection listed = listed_for(context, settings);
      mcp::ToolResult result = call({sandbox, settings, arguments, context, listed, Clock::now(), shown, notices});
      if (result.is_error && result.structured.contains("error")) {
        hide_unlisted_steps(listed, result);
      }
      const auto delivery = notices->take({context.owner, context.client}, context.correlation_id, sandbox,
                                          room_for_notices(result.text), Clock::now());
      if (!mcp::forbids_reply(context.interruption.reason())) {
        add_notices(delivery, result);
      }
      result.subject = sandbox.container_name();
      return result;
    };
    tools.push_back(std::move(tool));
  };
  for (const ToolRow& row : tool_table()) {
    if (settings.selection.contains(row.name) && (!row.uses_host_directories || settings.host_directories)) {
      add(row);
    }
  }
  for (const CompatRow& row : compat_table()) {
    if (settings.compat.contains(row.server)) {
      add(row.tool);
    }
  }
  return tools;
}

}  // namespace dockbridge::tools
