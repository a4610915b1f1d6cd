#include "mcp/skill.hpp"

#include <fmt/format.h>

#include "util/sha256.hpp"

namespace dockbridge::mcp {

namespace {

constexpr const char* k_mime_type = "text/markdown";

}  // namespace

std::string skill_file(const Skill& skill) {
  // A JSON string is a quoted string of YAML too.
  return fmt::format("---\nname: {}\ndescription: {}\n---\n\n{}", skill.name, dump(skill.description), skill.text);
}

json skill_entry(const Skill& skill) {
  const std::string file = skill_file(skill);
  return {{"uri", skill.uri},
          {"frontmatter", {{"name", skill.name}, {"description", skill.description}}},
          {"resources",
           json::array({{{"uri", skill.uri}, {"digest", "sha256:" + sha256_hex(file)}, {"size", file.size()}}})}};
}

json skill_resource(const Skill& skill) {
  return {{"uri", skill.uri},
          {"name", skill.name},
          {"description", skill.description},
          {"mimeType", k_mime_type},
          {"size", skill_file(skill).size()}};
}

json skill_contents(const Skill& skill) {
  return json::array({{{"uri", skill.uri}, {"mimeType", k_mime_type}, {"text", skill_file(skill)}}});
}

}  // namespace dockbridge::mcp
