#include "mcp/lists.hpp"

#include <algorithm>
#include <charconv>

#include "util/json_text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_page_size = 100;

/// Only values that differ from the defaults of the specification, because each conversation pays for the whole list.
json annotations_of(const Tool& tool, Revision revision) {
  const ToolAnnotations& known = tool.annotations;
  json annotations = json::object();
  if (revision < Revision::v2025_06_18) {
    annotations["title"] = tool.title;  // later revisions have it beside the name
  }
  if (known.read_only) {
    annotations["readOnlyHint"] = true;
  } else if (!known.destructive) {
    annotations["destructiveHint"] = false;
  }
  if (!known.read_only && known.idempotent) {
    annotations["idempotentHint"] = true;
  }
  if (!known.open_world) {
    annotations["openWorldHint"] = false;
  }
  return annotations;
}

json tool_entry(const Tool& tool, Revision revision, Representation representation) {
  // As text, because a `json` would sort the arguments by name.
  json entry = {{"name", tool.name},
                {"description", tool.description},
                {"inputSchema", with_known_text(tool.input_schema.dump())}};
  if (revision >= Revision::v2025_03_26) {
    if (json annotations = annotations_of(tool, revision); !annotations.empty()) {
      entry["annotations"] = std::move(annotations);
    }
  }
  if (revision >= Revision::v2025_06_18) {
    entry["title"] = tool.title;
    if (!tool.output_schema.is_null() && representation == Representation::structured) {
      entry["outputSchema"] = tool.output_schema;
    }
    if (!tool.meta.is_null()) {
      entry["_meta"] = tool.meta;
    }
  }
  if (revision == Revision::v2025_11_25 && tool.task_support != TaskSupport::forbidden) {
    entry["execution"] = {{"taskSupport", tool.task_support == TaskSupport::required ? "required" : "optional"}};
  }
  return entry;
}

json prompt_entry(const Prompt& prompt, Revision revision) {
  json entry = {{"name", prompt.name}, {"description", prompt.description}, {"arguments", json::array()}};
  for (const PromptArgument& argument : prompt.arguments) {
    entry["arguments"].push_back(
        {{"name", argument.name}, {"description", argument.description}, {"required", argument.required}});
  }
  put_title(entry, prompt.title, revision);
  return entry;
}

}  // namespace

Lists::Lists(const Catalogue& catalogue, const ResultFormat& format) : m_catalogue(catalogue), m_format(format) {
  for (std::size_t i = 0; i < m_tool_lists.size(); ++i) {
    const auto revision = static_cast<Revision>(i);
    for (const Representation representation : {Representation::text, Representation::structured}) {
      ToolList& list = m_tool_lists.at(i).at(static_cast<std::size_t>(representation));
      for (const Tool& tool : m_catalogue.tools()) {
        list.entries.push_back(tool_entry(tool, revision, representation));
      }
      list.text = with_known_text(dump(*tools(revision, representation)));
    }
  }
}

Result<json> Lists::page(const char* key, json entries, const json& cursor, Revision revision, bool filtered) const {
  std::size_t from = 0;
  if (!cursor.is_null()) {
    const std::string text = cursor.is_string() ? cursor.get<std::string>() : "";
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), from);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || from == 0 ||
        from >= entries.size()) {
      return fail(ErrorCode::bad_cursor, "Unknown cursor");
    }
  }
  json result = json::object();
  const std::size_t to = std::min(entries.size(), from + k_page_size);
  if (to < entries.size()) {
    result["nextCursor"] = std::to_string(to);
  }
  if (from > 0 || to < entries.size()) {
    const auto begin = entries.begin();
    entries = json(json::array_t(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to)));
  }
  result[key] = std::move(entries);
  return m_format.cacheable(std::move(result), revision, filtered);
}

const Lists::ToolList& Lists::tool_list(Revision revision, Representation representation) const {
  return m_tool_lists.at(static_cast<std::size_t>(revision)).at(static_cast<std::size_t>(representation));
}

Result<json> Lists::tools(Revision revision, Representation representation, const json& cursor,
                          const Visible& visible) const {
  const json& all = tool_list(revision, representation).entries;
  if (!visible) {
    return page("tools", all, cursor, revision);
  }
  json entries = json::array();
  for (const json& entry : all) {
    if (visible(entry.at("name").get<std::string>())) {
      json& shown = entries.emplace_back(entry);
      shown["description"] = m_catalogue.visible_text(entry.at("description").get<std::string>(), visible);
    }
  }
  return page("tools", std::move(entries), cursor, revision, /*filtered=*/true);
}

const json& Lists::tools_text(Revision revision, Representation representation) const {
  return tool_list(revision, representation).text;
}

Result<json> Lists::prompts(Revision revision, const json& cursor, const Visible& visible) const {
  json entries = json::array();
  for (const Prompt& prompt : m_catalogue.prompts()) {
    if (!visible || visible(prompt.name)) {
      entries.push_back(prompt_entry(prompt, revision));
    }
  }
  return page("prompts", std::move(entries), cursor, revision, visible != nullptr);
}

Result<json> Lists::resources(Revision revision, const json& cursor, const Visible& visible) const {
  json entries = json::array();
  for (const Resource& resource : m_catalogue.resources()->resources()) {
    if (!m_catalogue.offers_resource(resource.uri) || (visible && !visible(resource.uri))) {
      continue;
    }
    json entry = {{"uri", resource.uri},
                  {"name", resource.name},
                  {"description", resource.description},
                  {"mimeType", resource.mime_type}};
    put_title(entry, resource.title, revision);
    entries.push_back(std::move(entry));
  }
  for (const Skill& skill : m_catalogue.skills()) {
    if (is_stateless(revision) && (!visible || visible(skill.uri))) {
      entries.push_back(skill_resource(skill));
    }
  }
  return page("resources", std::move(entries), cursor, revision, visible != nullptr);
}

Result<json> Lists::templates(Revision revision, const json& cursor, const Visible& visible) const {
  json entries = json::array();
  for (const ResourceTemplate& resource : m_catalogue.resources()->templates()) {
    if (!m_catalogue.offers_resource(resource.uri_template) || (visible && !visible(resource.uri_template))) {
      continue;
    }
    json entry = {{"uriTemplate", resource.uri_template},
                  {"name", resource.name},
                  {"description", resource.description},
                  {"mimeType", resource.mime_type}};
    put_title(entry, resource.title, revision);
    entries.push_back(std::move(entry));
  }
  return page("resourceTemplates", std::move(entries), cursor, revision, visible != nullptr);
}

Result<json> Lists::skills(const json& cursor, const Visible& visible) const {
  json entries = json::array();
  for (const Skill& skill : m_catalogue.skills()) {
    if (!visible || visible(skill.uri)) {
      entries.push_back(skill_entry(skill));
    }
  }
  return page("skills", std::move(entries), cursor, Revision::v2026_07_28, visible != nullptr);
}

}  // namespace dockbridge::mcp
