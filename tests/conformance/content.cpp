#include "conformance/fixture.hpp"

namespace dockbridge::test {

using mcp::CallContext;
using mcp::json;
using mcp::LogSeverity;
using mcp::ordered_json;
using mcp::Tool;
using mcp::ToolResult;

namespace {

constexpr const char* k_silent_wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const json k_image = {{"type", "image"}, {"data", k_red_pixel}, {"mimeType", "image/png"}};

json embedded(const std::string& uri, const std::string& type, const std::string& text) {
  return {{"type", "resource"}, {"resource", {{"uri", uri}, {"mimeType", type}, {"text", text}}}};
}

ToolResult blocks(std::string text, std::vector<json> more) {
  ToolResult result;
  result.text = std::move(text);
  result.more_content = std::move(more);
  return result;
}

ToolResult with_logging(const json&, const CallContext& context) {
  for (const char* line : {"Tool execution started", "Tool processing data", "Tool execution completed"}) {
    if (context.log) {
      context.log(LogSeverity::info, line);
    }
  }
  return text_result("Tool with logging executed successfully");
}

ToolResult with_progress(const json&, const CallContext& context) {
  for (const char* step : {"0 of 100", "50 of 100", "100 of 100"}) {
    context.report_progress(step);
  }
  return text_result("done");
}

Tool schema_tool() {
  Tool tool = plain_tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features",
                         [](const json& arguments, const CallContext&) { return text_result(arguments.dump()); });
  tool.input_schema = ordered_json::parse(R"({
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object",
              "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                   "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                   "phone": {"type": "string"}, "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false})");
  return tool;
}

Tool header_tool() {
  Tool tool = plain_tool("test_header_parameter", "Tool with a parameter that is repeated in a header",
                         [](const json& arguments, const CallContext&) { return text_result(arguments.dump()); });
  tool.input_schema = {{"type", "object"},
                       {"properties", {{"region", {{"type", "string"}, {"x-mcp-header", "Region"}}}}}};
  return tool;
}

}  // namespace

Tool plain_tool(const std::string& name, const std::string& description,
                std::function<ToolResult(const json&, const CallContext&)> call) {
  Tool tool;
  tool.name = name;
  tool.title = name;
  tool.description = description;
  tool.input_schema = {{"type", "object"}, {"properties", ordered_json::object()}};
  tool.call = std::move(call);
  return tool;
}

ToolResult text_result(const std::string& text) {
  ToolResult result;
  result.text = text;
  return result;
}

std::vector<Tool> content_tools() {
  const auto always = [](const ToolResult& result) { return [=](const json&, const CallContext&) { return result; }; };
  ToolResult error = text_result("This tool intentionally returns an error for testing");
  error.is_error = true;
  return {plain_tool("test_simple_text", "Text content",
                     always(text_result("This is a simple text response for testing."))),
          plain_tool("test_image_content", "Image content", always(blocks("", {k_image}))),
          plain_tool("test_audio_content", "Audio content",
                     always(blocks("", {{{"type", "audio"}, {"data", k_silent_wav}, {"mimeType", "audio/wav"}}}))),
          plain_tool("test_embedded_resource", "An embedded resource",
                     always(blocks("", {embedded("test://embedded-resource", "text/plain",
                                                 "This is an embedded resource content.")}))),
          plain_tool("test_multiple_content_types", "Text, image and resource",
                     always(blocks("Multiple content types test:",
                                   {k_image, embedded("test://mixed-content-resource", "application/json",
                                                      R"({"test":"data","value":123})")}))),
          plain_tool("test_tool_with_logging", "Log messages", with_logging),
          plain_tool("test_logging_tool", "Log messages", with_logging),
          plain_tool("test_tool_with_progress", "Progress", with_progress),
          plain_tool("test_streaming_elicitation", "Progress", with_progress),
          plain_tool("test_error_handling", "An error", always(error)),
          plain_tool("greet", "A greeting",
                     [](const json& arguments, const CallContext&) {
                       return text_result("Hello, " + arguments.value("name", "you") + "!");
                     }),
          schema_tool(),
          header_tool()};
}

std::vector<Tool> changing_tools(mcp::Bulletin*& bulletin) {
  const auto publishing = [&bulletin](mcp::Notice::Kind kind) {
    return [&bulletin, kind](const json&, const CallContext&) {
      bulletin->publish({kind});
      return text_result("Mutation triggered");
    };
  };
  return {
      plain_tool("test_trigger_tool_change", "Tells that tools changed", publishing(mcp::Notice::Kind::tools_changed)),
      plain_tool("test_trigger_prompt_change", "Tells that prompts changed",
                 publishing(mcp::Notice::Kind::prompts_changed))};
}

std::vector<mcp::Prompt> fixture_prompts() {
  const auto says = [](json content) { return json{{"role", "user"}, {"content", std::move(content)}}; };
  const auto text = [says](const std::string& words) { return says({{"type", "text"}, {"text", words}}); };
  return {
      {"test_simple_prompt",
       "Simple prompt",
       "A simple prompt without arguments",
       {},
       [text](const json&, const CallContext&) {
         return mcp::PromptResult{json::array({text("This is a simple prompt for testing.")})};
       }},
      {"test_prompt_with_arguments",
       "Prompt with arguments",
       "A prompt with required arguments",
       {{"arg1", "First test argument", true}, {"arg2", "Second test argument", true}},
       [text](const json& in, const CallContext&) {
         return mcp::PromptResult{json::array({text("Prompt with arguments: arg1='" + in.at("arg1").get<std::string>() +
                                                    "', arg2='" + in.at("arg2").get<std::string>() + "'")})};
       }},
      {"test_prompt_with_embedded_resource",
       "Prompt with a resource",
       "A prompt that includes an embedded resource",
       {{"resourceUri", "URI of the resource to embed", true}},
       [says, text](const json& given, const CallContext&) {
         return mcp::PromptResult{json::array(
             {says(embedded(given.at("resourceUri"), "text/plain", "Embedded resource content for testing.")),
              text("Please process the embedded resource above.")})};
       }},
      {"test_prompt_with_image",
       "Prompt with an image",
       "A prompt that includes image content",
       {},
       [says, text](const json&, const CallContext&) {
         return mcp::PromptResult{json::array({says(k_image), text("Please analyze the image above.")})};
       }},
      {"test_input_required_result_prompt",
       "Prompt that asks",
       "A prompt that needs input",
       {},
       [text](const json&, const CallContext& context) {
         const auto given = context.input_responses.find("user_context");
         if (given == context.input_responses.end() || !given->is_object()) {
           mcp::PromptResult asking;
           asking.input_required = mcp::InputRequired{
               {{"user_context", elicitation("What context should the prompt use?", "context", "string")}}};
           return asking;
         }
         const json content = given->value("content", json::object());
         return mcp::PromptResult{json::array({text("Prompt with context: " + content.value("context", ""))})};
       }}};
}

std::vector<mcp::Resource> FixtureResources::resources() const {
  return {{"test://static-text", "static-text", "Static text", "A static text resource", "text/plain"},
          {"test://static-binary", "static-binary", "Static binary", "A static binary resource", "image/png"},
          {"test://watched-resource", "watched-resource", "Watched", "A resource to subscribe to", "text/plain"}};
}

std::vector<mcp::ResourceTemplate> FixtureResources::templates() const {
  return {{"test://template/{id}/data", "template", "Template", "A resource template", "application/json"}};
}

Result<json> FixtureResources::read(const std::string& uri, const CallContext&) {
  const auto text = [&](const std::string& words, const char* type) {
    return json::array({{{"uri", uri}, {"mimeType", type}, {"text", words}}});
  };
  if (uri == "test://static-text") {
    return text("This is the content of the static text resource.", "text/plain");
  }
  if (uri == "test://watched-resource") {
    return text("Watched resource content", "text/plain");
  }
  if (uri == "test://static-binary") {
    return json::array({{{"uri", uri}, {"mimeType", "image/png"}, {"blob", k_red_pixel}}});
  }
  constexpr std::string_view k_prefix = "test://template/";
  constexpr std::string_view k_suffix = "/data";
  if (uri.starts_with(k_prefix) && uri.ends_with(k_suffix)) {
    const std::string id = uri.substr(k_prefix.size(), uri.size() - k_prefix.size() - k_suffix.size());
    return text(json{{"id", id}, {"templateTest", true}, {"data", "Data for ID: " + id}}.dump(), "application/json");
  }
  return fail(ErrorCode::resource_not_found, "there is no resource " + uri);
}

std::shared_ptr<void> FixtureResources::watch(const std::string& uri, const std::string&) {
  return uri == "test://watched-resource" ? std::make_shared<int>(0) : nullptr;
}

}  // namespace dockbridge::test
