#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "mcp/lost_tasks.hpp"
#include "mcp/message.hpp"
#include "mcp/prompt.hpp"
#include "mcp/resource.hpp"
#include "mcp/revision.hpp"
#include "mcp/skill.hpp"
#include "mcp/tool.hpp"

namespace dockbridge::mcp {

struct ServerInfo {
  std::string name;
  std::string title;
  std::string version;
  std::string instructions;
  std::string icon{};            ///< URI of an SVG; empty means none
  bool announces_lists = false;  ///< the lists may change while the server runs
  /// Used for requests that do not ask for another.
  Representation representation = Representation::structured;
  /// Severity from which handshake clients get log messages before they choose one; nullopt means none are sent.
  std::optional<LogSeverity> unasked_log{};
};

/// Whether a client may see a tool, prompt or resource. Empty means that it may see all.
using Visible = std::function<bool(const std::string& name_or_uri)>;

/// Everything that a client can use.
struct Offer {
  std::vector<Tool> tools{};
  std::vector<Prompt> prompts{};
  ResourceProvider* resources = nullptr;  ///< outlives the server
  LostTasks* lost_tasks = nullptr;        ///< outlives the server; null: unknown tasks stay unknown
  std::vector<Skill> skills{};            ///< skills and prompts that name a tool which is not offered are dropped
  /// A text without the sentences that name a tool which a client may not see. Empty: texts name no tools.
  std::function<std::string(const std::string& text, const Visible& tools)> visible_text{};
};

/// A parameter that HTTP clients of the stateless revision repeat in a header.
struct HeaderParameter {
  std::string header;             ///< "Mcp-Param-Region"
  std::vector<std::string> path;  ///< into the arguments
};

/// Descriptions of this server and its offer, in the form of each revision. Has neither connections nor state, so any
/// thread may call. Lists have pages, and always the same order.
class Server {
 public:
  Server(ServerInfo info, Offer offer);

  [[nodiscard]] const ServerInfo& info() const { return m_info; }
  // `tools`: the tools that the client may see.
  [[nodiscard]] json initialize_result(Revision revision, const Visible& tools = {}) const;
  [[nodiscard]] json discover_result(const Visible& tools = {}) const;
  [[nodiscard]] std::string visible_text(const std::string& text, const Visible& tools) const;
  // Each list starts at `cursor`, which is null for the first page. A cursor that this server has not issued is an
  // error.
  [[nodiscard]] Result<json> tools_list_result(Revision revision, Representation representation,
                                               const json& cursor = nullptr, const Visible& visible = {}) const;
  /// The first page for a client that may see all tools, as text that is ready to be sent.
  [[nodiscard]] const json& tools_list_text(Revision revision, Representation representation) const;
  [[nodiscard]] Result<json> prompts_list_result(Revision revision, const json& cursor,
                                                 const Visible& visible = {}) const;
  [[nodiscard]] Result<json> resources_list_result(Revision revision, const json& cursor,
                                                   const Visible& visible = {}) const;
  [[nodiscard]] Result<json> templates_list_result(Revision revision, const json& cursor,
                                                   const Visible& visible = {}) const;
  [[nodiscard]] json call_result(ToolResult result, Revision revision, Representation representation) const;
  [[nodiscard]] json prompt_result(const Prompt& prompt, PromptResult result, Revision revision) const;
  /// Skills are served in the stateless revision only.
  [[nodiscard]] Result<json> skills_list_result(const json& cursor, const Visible& visible = {}) const;
  [[nodiscard]] json skill_result(const Skill& skill, bool filtered) const;
  [[nodiscard]] const Skill* find_skill(const std::string& uri) const;
  [[nodiscard]] json read_result(json contents, Revision revision) const;
  /// Any other result, with the fields that every result of the stateless revision has.
  [[nodiscard]] json finished(json result, Revision revision, const char* type = "complete") const;

  [[nodiscard]] const std::vector<Tool>& tools() const { return m_offer.tools; }
  /// nullptr if not found.
  [[nodiscard]] const Tool* find_tool(const std::string& name) const;
  [[nodiscard]] const Prompt* find_prompt(const std::string& name) const;
  [[nodiscard]] ResourceProvider* resources() const { return m_offer.resources; }
  [[nodiscard]] LostTasks* lost_tasks() const { return m_offer.lost_tasks; }
  [[nodiscard]] std::vector<HeaderParameter> header_parameters(const std::string& tool) const;

 private:
  /// `whole`: with the fields that need not be repeated in each result.
  [[nodiscard]] json implementation(Revision revision, bool whole) const;
  [[nodiscard]] json capabilities(Revision revision) const;
  /// Whether the tool that shows the same as a resource is offered.
  [[nodiscard]] bool offers_resource(const std::string& uri) const;
  [[nodiscard]] Result<json> list(const char* key, json entries, const json& cursor, Revision revision,
                                  bool filtered = false) const;

  ServerInfo m_info;
  Offer m_offer;
  /// The tools in the form of one revision and representation.
  struct ToolList {
    json entries = json::array();
    json text;  ///< the first page, ready to be sent
  };
  [[nodiscard]] const ToolList& tool_list(Revision revision, Representation representation) const;
  std::array<std::array<ToolList, 2>, k_revision_names.size()> m_tool_lists;  // by revision, then representation
};

}  // namespace dockbridge::mcp
