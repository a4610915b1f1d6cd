#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mcp/lost_tasks.hpp"
#include "mcp/prompt.hpp"
#include "mcp/resource.hpp"
#include "mcp/skill.hpp"
#include "mcp/tool.hpp"

namespace dockbridge::mcp {

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

/// The offer of a server, and lookups in it. Immutable, so any thread may call.
class Catalogue {
 public:
  explicit Catalogue(Offer offer);

  [[nodiscard]] const std::vector<Tool>& tools() const { return m_offer.tools; }
  [[nodiscard]] const std::vector<Prompt>& prompts() const { return m_offer.prompts; }
  [[nodiscard]] const std::vector<Skill>& skills() const { return m_offer.skills; }
  [[nodiscard]] ResourceProvider* resources() const { return m_offer.resources; }
  [[nodiscard]] LostTasks* lost_tasks() const { return m_offer.lost_tasks; }

  // nullptr if not found.
  [[nodiscard]] const Tool* find_tool(const std::string& name) const;
  [[nodiscard]] const Prompt* find_prompt(const std::string& name) const;
  [[nodiscard]] const Skill* find_skill(const std::string& uri) const;
  /// Whether the tool that shows the same as a resource is offered.
  [[nodiscard]] bool offers_resource(const std::string& uri) const;
  [[nodiscard]] std::vector<HeaderParameter> header_parameters(const std::string& tool) const;
  /// `tools`: the tools that the client may see.
  [[nodiscard]] std::string visible_text(const std::string& text, const Visible& tools) const;

 private:
  Offer m_offer;
};

}  // namespace dockbridge::mcp
