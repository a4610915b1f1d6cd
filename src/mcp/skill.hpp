#pragma once

#include <string>
#include <vector>

#include "mcp/message.hpp"

namespace dockbridge::mcp {

/// Instructions for one kind of work, served as a skill of one file (extension io.modelcontextprotocol/skills).
struct Skill {
  std::string uri;   ///< "skill://PREFIX/NAME/SKILL.md"
  std::string name;  ///< lower-case letters, digits and hyphens
  std::string description;
  std::vector<std::string> tools;  ///< named in the text; a client that may not use all of them does not see the skill
  std::string text;                ///< Markdown, without the frontmatter
};

/// The content of its SKILL.md: YAML frontmatter, then the text.
std::string skill_file(const Skill& skill);
/// Its entry in skills/list and skills/get: URI, frontmatter, and the file with its digest and size.
json skill_entry(const Skill& skill);
/// Its SKILL.md as an entry of resources/list, and as the contents that resources/read returns.
json skill_resource(const Skill& skill);
json skill_contents(const Skill& skill);

}  // namespace dockbridge::mcp
