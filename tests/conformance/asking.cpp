#include <chrono>
#include <condition_variable>
#include <mutex>

#include "conformance/fixture.hpp"
#include "mcp/state_seal.hpp"
#include "util/clock.hpp"
#include "util/encoding.hpp"
#include "util/random.hpp"

namespace dockbridge::test {

using mcp::CallContext;
using mcp::InputRequired;
using mcp::json;
using mcp::Tool;
using mcp::ToolResult;

json elicitation(const std::string& message, const std::string& field, const std::string& type) {
  return {{"method", "elicitation/create"},
          {"params",
           {{"mode", "form"},
            {"message", message},
            {"requestedSchema",
             {{"type", "object"}, {"properties", {{field, {{"type", type}}}}}, {"required", {field}}}}}}};
}

namespace {

json sampling(const std::string& prompt) {
  return {
      {"method", "sampling/createMessage"},
      {"params",
       {{"messages", {{{"role", "user"}, {"content", {{"type", "text"}, {"text", prompt}}}}}}, {"maxTokens", 100}}}};
}

const json k_list_roots = {{"method", "roots/list"}, {"params", json::object()}};

json form(const std::string& message, json properties) {
  return {{"method", "elicitation/create"},
          {"params",
           {{"mode", "form"},
            {"message", message},
            {"requestedSchema",
             {{"type", "object"}, {"properties", std::move(properties)}, {"required", json::array()}}}}}};
}

ToolResult ask_and_tell(const CallContext& context, const json& request, const std::string& prefix) {
  if (!context.ask) {
    return text_result("The client cannot be asked");
  }
  const auto answers = context.ask({{"question", request}});
  if (!answers) {
    return text_result("Not supported or error: " + answers.error().message);
  }
  const json& answer = answers->at("question");
  return text_result(prefix + "action=" + answer.value("action", "") +
                     ", content=" + answer.value("content", json::object()).dump());
}

/// Waits for the requested time, or until the call is interrupted.
void pause(const CallContext& context, milliseconds span) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, context.interruption.token(), span, [] { return false; });
}

ToolResult input_required(json requests, std::string state = "") {
  ToolResult result;
  result.input_required = InputRequired{std::move(requests), std::move(state)};
  return result;
}

/// A field of the form that the client filled in; nullopt if it did not.
std::optional<json> answered(const CallContext& context, const std::string& name) {
  const auto found = context.input_responses.find(name);
  return found != context.input_responses.end() && found->is_object() ? std::optional<json>(*found) : std::nullopt;
}

std::string field(const json& answer, const char* name) {
  const json content = answer.value("content", json::object());
  return content.is_object() && content.contains(name) && content[name].is_string() ? content[name].get<std::string>()
                                                                                    : "unknown";
}

json sealed(const CallContext& context) {
  return context.seal->open(context.request_state).value_or(json::object());
}

std::string seal(const CallContext& context, json state) {
  state["nonce"] = to_hex(random_bytes(8));
  return context.seal->seal(state);
}

ToolResult ask_multi_round(const CallContext& context) {
  const json state = sealed(context);
  const int round = state.value("round", 0);
  if (round == 1) {
    if (const auto answer = answered(context, "step1")) {
      return input_required({{"step2", elicitation("Step 2: What is your favorite color?", "color", "string")}},
                            seal(context, {{"round", 2}, {"name", field(*answer, "name")}}));
    }
  }
  if (round == 2) {
    if (const auto answer = answered(context, "step2")) {
      return text_result("Multi-round complete for " + state.value("name", "") + " who likes " +
                         field(*answer, "color"));
    }
  }
  return input_required({{"step1", elicitation("Step 1: What is your name?", "name", "string")}},
                        seal(context, {{"round", 1}}));
}

ToolResult ask_for_state(const CallContext& context, const char* kind, const char* good) {
  if (!context.request_state.empty()) {
    const auto state = context.seal->open(context.request_state);
    if (!state) {
      ToolResult refused;
      refused.protocol_error = mcp::ProtocolError{mcp::k_invalid_params, "requestState integrity check failed"};
      return refused;
    }
    if (state->value("kind", "") == kind && answered(context, "confirm")) {
      return text_result(good);
    }
  }
  return input_required({{"confirm", elicitation("Please confirm", "ok", "boolean")}}, seal(context, {{"kind", kind}}));
}

ToolResult ask_by_capability(const CallContext& context) {
  if (!context.input_responses.empty()) {
    return text_result("capabilities-ok");
  }
  json requests = json::object();
  if (context.client_capabilities.contains("elicitation")) {
    requests["elicit_input"] = elicitation("Elicitation input", "value", "string");
  }
  if (context.client_capabilities.contains("sampling")) {
    requests["sample_input"] = sampling("Sample request");
  }
  return requests.empty() ? text_result("No supported capabilities declared")
                          : input_required(requests, seal(context, {{"kind", "capabilities"}}));
}

ToolResult ask_for_several(const CallContext& context) {
  const auto name = answered(context, "user_name");
  const auto greeting = answered(context, "greeting");
  const auto roots = answered(context, "client_roots");
  if (name && greeting && roots && sealed(context).value("kind", "") == "multiple") {
    return text_result("Name: " + field(*name, "name") +
                       "; Roots: " + std::to_string(roots->value("roots", json::array()).size()));
  }
  return input_required({{"user_name", elicitation("What is your name?", "name", "string")},
                         {"greeting", sampling("Generate a greeting")},
                         {"client_roots", k_list_roots}},
                        seal(context, {{"kind", "multiple"}}));
}

ToolResult need_sampling(const CallContext& context) {
  if (context.client_capabilities.contains("sampling")) {
    return text_result("Success");
  }
  ToolResult refused;
  refused.protocol_error = mcp::ProtocolError{
      mcp::k_missing_capability, "sampling is needed", {{"requiredCapabilities", {{"sampling", json::object()}}}}};
  return refused;
}

Tool task_tool(const std::string& name, mcp::TaskSupport support,
               std::function<ToolResult(const json&, const CallContext&)> call) {
  Tool tool = plain_tool(name, "A tool whose call becomes a task", std::move(call));
  tool.task_support = support;
  return tool;
}

void become_task(const CallContext& context) {
  context.become_task();
}

}  // namespace

std::vector<Tool> asking_tools() {
  return {plain_tool("test_sampling", "Asks for a completion",
                     [](const json& arguments, const CallContext& context) {
                       if (!context.ask) {
                         return text_result("The client cannot be asked");
                       }
                       const auto answers = context.ask({{"question", sampling(arguments.value("prompt", ""))}});
                       if (!answers) {
                         return text_result("Sampling not supported or error: " + answers.error().message);
                       }
                       const json content = answers->at("question").value("content", json::object());
                       return text_result("LLM response: " + content.value("text", "No response"));
                     }),
          plain_tool("test_elicitation", "Asks for input",
                     [](const json& arguments, const CallContext& context) {
                       return ask_and_tell(context, elicitation(arguments.value("message", ""), "response", "string"),
                                           "User response: ");
                     }),
          plain_tool("test_elicitation_sep1034_defaults", "Asks with defaults",
                     [](const json&, const CallContext& context) {
                       return ask_and_tell(
                           context,
                           form("Please review and update the form fields with defaults",
                                {{"name", {{"type", "string"}, {"description", "User name"}, {"default", "John Doe"}}},
                                 {"age", {{"type", "integer"}, {"description", "User age"}, {"default", 30}}},
                                 {"score", {{"type", "number"}, {"description", "User score"}, {"default", 95.5}}},
                                 {"status",
                                  {{"type", "string"},
                                   {"description", "User status"},
                                   {"enum", {"active", "inactive", "pending"}},
                                   {"default", "active"}}},
                                 {"verified",
                                  {{"type", "boolean"}, {"description", "Verification status"}, {"default", true}}}}),
                           "Elicitation completed: ");
                     }),
          plain_tool("test_elicitation_sep1330_enums", "Asks with choices",
                     [](const json&, const CallContext& context) {
                       const json options = json::parse(R"json({
                         "untitledSingle": {"type": "string", "description": "Select one option",
                                            "enum": ["option1", "option2", "option3"]},
                         "titledSingle": {"type": "string", "description": "Select one option with titles",
                                          "oneOf": [{"const": "value1", "title": "First Option"},
                                                    {"const": "value2", "title": "Second Option"},
                                                    {"const": "value3", "title": "Third Option"}]},
                         "legacyEnum": {"type": "string", "description": "Select one option (legacy)",
                                        "enum": ["opt1", "opt2", "opt3"],
                                        "enumNames": ["Option One", "Option Two", "Option Three"]},
                         "untitledMulti": {"type": "array", "description": "Select multiple options", "minItems": 1,
                                           "maxItems": 3,
                                           "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
                         "titledMulti": {"type": "array", "description": "Select multiple options with titles",
                                         "minItems": 1, "maxItems": 3,
                                         "items": {"anyOf": [{"const": "value1", "title": "First Choice"},
                                                             {"const": "value2", "title": "Second Choice"},
                                                             {"const": "value3", "title": "Third Choice"}]}}})json");
                       return ask_and_tell(context, form("Please select options from the enum fields", options),
                                           "Elicitation completed: ");
                     }),
          plain_tool("test_reconnection", "Lets go of the stream while it runs",
                     [](const json&, const CallContext& context) {
                       context.hang_up();
                       pause(context, milliseconds(100));
                       return text_result("Reconnection test completed successfully");
                     })};
}

std::vector<Tool> input_required_tools() {
  const auto asks = [](ToolResult (*ask)(const CallContext&)) {
    return [ask](const json&, const CallContext& context) { return ask(context); };
  };
  return {
      plain_tool("test_missing_capability", "Needs sampling", asks(need_sampling)),
      plain_tool("test_input_required_result_elicitation", "Asks for a name",
                 [](const json&, const CallContext& context) {
                   if (const auto answer = answered(context, "user_name")) {
                     return text_result("Hello, " + field(*answer, "name") + "!");
                   }
                   return input_required({{"user_name", elicitation("What is your name?", "name", "string")}});
                 }),
      plain_tool("test_input_required_result_sampling", "Asks for a completion",
                 [](const json&, const CallContext& context) {
                   if (const auto answer = answered(context, "sample_request")) {
                     return text_result("Sampled: " + answer->value("content", json::object()).dump());
                   }
                   return input_required({{"sample_request", sampling("What is the capital of France?")}});
                 }),
      plain_tool("test_input_required_result_list_roots", "Asks for roots",
                 [](const json&, const CallContext& context) {
                   if (const auto answer = answered(context, "roots_request")) {
                     return text_result("Found " + std::to_string(answer->value("roots", json::array()).size()) +
                                        " root(s)");
                   }
                   return input_required({{"roots_request", k_list_roots}});
                 }),
      plain_tool("test_input_required_result_request_state", "Carries state",
                 [](const json&, const CallContext& context) {
                   return ask_for_state(context, "request-state", "state-ok: requestState validated");
                 }),
      plain_tool("test_input_required_result_tampered_state", "Carries sealed state",
                 [](const json&, const CallContext& context) {
                   return ask_for_state(context, "tamper-test", "integrity-ok: state verified");
                 }),
      plain_tool("test_input_required_result_multiple_inputs", "Asks several things", asks(ask_for_several)),
      plain_tool("test_input_required_result_multi_round", "Asks twice", asks(ask_multi_round)),
      plain_tool("test_input_required_result_capabilities", "Asks what the client can", asks(ask_by_capability)),
  };
}

std::vector<Tool> task_tools() {
  using mcp::TaskSupport;
  Tool slow = task_tool("slow_compute", TaskSupport::optional, [](const json& arguments, const CallContext& context) {
    const int seconds_to_wait = arguments.value("seconds", 1);
    if (seconds_to_wait > 0) {
      become_task(context);
    }
    pause(context, seconds(seconds_to_wait));
    return text_result("computed " + arguments.value("label", ""));
  });
  slow.input_schema = {{"type", "object"},
                       {"properties", {{"seconds", {{"type", "integer"}}}, {"label", {{"type", "string"}}}}}};
  return {slow,
          task_tool("failing_job", TaskSupport::required,
                    [](const json&, const CallContext& context) {
                      become_task(context);
                      pause(context, milliseconds(300));
                      ToolResult result = text_result("the job failed");
                      result.is_error = true;
                      return result;
                    }),
          task_tool("protocol_error_job", TaskSupport::optional,
                    [](const json&, const CallContext& context) {
                      become_task(context);
                      ToolResult result;
                      result.protocol_error = mcp::ProtocolError{mcp::k_internal_error, "the job broke"};
                      return result;
                    }),
          task_tool("confirm_delete", TaskSupport::optional,
                    [](const json& arguments, const CallContext& context) {
                      become_task(context);
                      return ask_and_tell(
                          context,
                          elicitation("Delete " + arguments.value("filename", "it") + "?", "confirm", "boolean"),
                          "confirmed: ");
                    }),
          task_tool("multi_input", TaskSupport::optional,
                    [](const json&, const CallContext& context) {
                      become_task(context);
                      const auto answers = context.ask({{"first", elicitation("Your name?", "name", "string")},
                                                        {"second", elicitation("Another name?", "name", "string")}});
                      return text_result(answers ? "both answered" : answers.error().message);
                    }),
          task_tool("test_tool_with_task", TaskSupport::required, [](const json&, const CallContext& context) {
            const auto answer = answered(context, "user_name");
            if (!answer) {
              return input_required({{"user_name", elicitation("What is your name?", "name", "string")}},
                                    seal(context, {{"kind", "composition"}}));
            }
            become_task(context);
            pause(context, milliseconds(200));
            return text_result("Hello, " + field(*answer, "name") + "!");
          })};
}

}  // namespace dockbridge::test
