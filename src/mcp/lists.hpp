#pragma once

#include <array>

#include "mcp/catalogue.hpp"
#include "mcp/result_format.hpp"

namespace dockbridge::mcp {

/// The lists of a catalogue in the form of each revision. Lists have pages, and always the same order. Immutable, so
/// any thread may call.
class Lists {
 public:
  /// Both arguments outlive this.
  Lists(const Catalogue& catalogue, const ResultFormat& format);

  // Each list starts at `cursor`, which is null for the first page. A cursor that this server has not issued is an
  // error.
  [[nodiscard]] Result<json> tools(Revision revision, Representation representation, const json& cursor = nullptr,
                                   const Visible& visible = {}) const;
  /// The first page for a client that may see all tools, as text that is ready to be sent.
  [[nodiscard]] const json& tools_text(Revision revision, Representation representation) const;
  [[nodiscard]] Result<json> prompts(Revision revision, const json& cursor, const Visible& visible = {}) const;
  [[nodiscard]] Result<json> resources(Revision revision, const json& cursor, const Visible& visible = {}) const;
  [[nodiscard]] Result<json> templates(Revision revision, const json& cursor, const Visible& visible = {}) const;
  /// Skills are served in the stateless revision only.
  [[nodiscard]] Result<json> skills(const json& cursor, const Visible& visible = {}) const;

 private:
  [[nodiscard]] Result<json> page(const char* key, json entries, const json& cursor, Revision revision,
                                  bool filtered = false) const;

  const Catalogue& m_catalogue;
  const ResultFormat& m_format;
  /// The tools in the form of one revision and representation.
  struct ToolList {
    json entries = json::array();
    json text;  ///< the first page, ready to be sent
  };
  [[nodiscard]] const ToolList& tool_list(Revision revision, Representation representation) const;
  std::array<std::array<ToolList, 2>, k_revision_names.size()> m_tool_lists;  // by revision, then representation
};

}  // namespace dockbridge::mcp
