#include "mcp/server.hpp"

#include <algorithm>

namespace dockbridge::mcp {

namespace {

json capabilities_of(const Server& server, Revision revision) {
  const Catalogue& catalogue = server.catalogue;
  const json list = server.info.announces_lists ? json{{"listChanged", true}} : json::object();
  json all = {{"tools", list}, {"logging", json::object()}};
  if (!catalogue.prompts().empty()) {
    all["prompts"] = list;
  }
  if (catalogue.resources() != nullptr) {
    all["resources"] = list;
    all["resources"]["subscribe"] = true;
  }
  if (revision >= Revision::v2025_03_26 && (catalogue.resources() != nullptr || !catalogue.prompts().empty())) {
    all["completions"] = json::object();
  }
  const bool tasks = std::any_of(catalogue.tools().begin(), catalogue.tools().end(),
                                 [](const Tool& tool) { return tool.task_support != TaskSupport::forbidden; });
  if (tasks && revision == Revision::v2025_11_25) {
    all["tasks"] = {
        {"list", json::object()}, {"cancel", json::object()}, {"requests", {{"tools", {{"call", json::object()}}}}}};
  }
  if (tasks && is_stateless(revision)) {
    all["extensions"][k_tasks_extension] = json::object();
  }
  if (!catalogue.skills().empty() && catalogue.resources() != nullptr && is_stateless(revision)) {
    all["extensions"][k_skills_extension] = json::object();
  }
  return all;
}

}  // namespace

Revision negotiate(const json& requested) {
  for (int i = 0; i <= static_cast<int>(k_newest_handshake); ++i) {
    if (requested == k_revision_names.at(static_cast<std::size_t>(i))) {
      return static_cast<Revision>(i);
    }
  }
  return k_newest_handshake;
}

json Server::initialize_result(Revision revision, const Visible& tools) const {
  return {{"protocolVersion", name_of(revision)},
          {"capabilities", capabilities_of(*this, revision)},
          {"serverInfo", format.implementation(revision, true)},
          {"instructions", catalogue.visible_text(info.instructions, tools)}};
}

json Server::discover_result(const Visible& tools) const {
  constexpr Revision k_revision = Revision::v2026_07_28;
  json result = format.cacheable({{"supportedVersions", {name_of(k_revision)}},
                                  {"capabilities", capabilities_of(*this, k_revision)},
                                  {"instructions", catalogue.visible_text(info.instructions, tools)}},
                                 k_revision, tools != nullptr);
  result["_meta"][k_meta_server_info] = format.implementation(k_revision, true);
  return result;
}

}  // namespace dockbridge::mcp
