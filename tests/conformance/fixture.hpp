#pragma once

#include <vector>

#include "mcp/bulletin.hpp"
#include "mcp/prompt.hpp"
#include "mcp/resource.hpp"
#include "mcp/tool.hpp"

namespace dockbridge::test {

// The tools, prompts and resources that the official conformance suite expects, with its own descriptions.

std::vector<mcp::Tool> content_tools();
/// Tools that send requests to the client while they run (handshake revisions).
std::vector<mcp::Tool> asking_tools();
/// Tools that send requests to the client in their result (stateless revision).
std::vector<mcp::Tool> input_required_tools();
std::vector<mcp::Tool> task_tools();
/// Tools that publish a change to subscribed clients. `bulletin` returns the destination once it exists.
std::vector<mcp::Tool> changing_tools(mcp::Bulletin*& bulletin);
std::vector<mcp::Prompt> fixture_prompts();

class FixtureResources : public mcp::ResourceProvider {
 public:
  [[nodiscard]] std::vector<mcp::Resource> resources() const override;
  [[nodiscard]] std::vector<mcp::ResourceTemplate> templates() const override;
  Result<mcp::json> read(const std::string& uri, const mcp::CallContext& context) override;
  std::shared_ptr<void> watch(const std::string& uri, const std::string& owner) override;
};

inline constexpr const char* k_red_pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A tool without arguments, whose result has no structure.
mcp::Tool plain_tool(const std::string& name, const std::string& description,
                     std::function<mcp::ToolResult(const mcp::json&, const mcp::CallContext&)> call);
mcp::ToolResult text_result(const std::string& text);
/// A form with one field.
mcp::json elicitation(const std::string& message, const std::string& field, const std::string& type);

}  // namespace dockbridge::test
