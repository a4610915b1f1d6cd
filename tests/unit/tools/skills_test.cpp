#include "tools/skills.hpp"
#include "support/field.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <regex>

#include "tools/toolbox.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// The listed tools, by name.
std::map<std::string, mcp::Tool> listed_tools() {
  static World world;
  std::map<std::string, mcp::Tool> tools;
  for (mcp::Tool& tool :
       tools::all_tools([](const mcp::CallContext&) -> sandbox::Sandbox& { return world.sandbox; }, {})) {
    tools.emplace(tool.name, std::move(tool));
  }
  return tools;
}

/// The first group of all matches.
std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

}  // namespace

TEST_CASE("skills: a skill names its tools, all of them listed, and no other") {
  const auto tools = listed_tools();
  for (const mcp::Skill& skill : tools::all_skills()) {
    CAPTURE(skill.name);
    for (const std::string& tool : skill.tools) {
      CHECK(tools.contains(tool));
      CHECK(skill.text.find("`" + tool + "`") != std::string::npos);
    }
    for (const auto& [name, tool] : tools) {
      const bool named = skill.text.find(name) != std::string::npos;
      CHECK(named == (std::count(skill.tools.begin(), skill.tools.end(), name) > 0));
    }
  }
}

TEST_CASE("skills: each argument exists in a tool and has a value of its type") {
  const auto tools = listed_tools();
  for (const mcp::Skill& skill : tools::all_skills()) {
    const auto given = matches(skill.text, "`([a-zA-Z]+: [^`]+)`");
    CHECK_FALSE(given.empty());
    for (const std::string& argument : given) {
      CAPTURE(argument);
      const std::string name = argument.substr(0, argument.find(':'));
      const json value = json::parse(argument.substr(name.size() + 1), nullptr, false);
      CHECK_FALSE(value.is_discarded());
      const bool known = std::any_of(skill.tools.begin(), skill.tools.end(), [&](const std::string& tool) {
        return field(tools.at(tool).input_schema, "properties").contains(name);
      });
      CHECK(known);
    }
  }
}

TEST_CASE("skills: they are short, and their URIs end with their names") {
  for (const mcp::Skill& skill : tools::all_skills()) {
    CAPTURE(skill.name);
    CHECK(mcp::skill_file(skill).size() < 2000);
    CHECK(skill.uri.ends_with("/" + skill.name + "/SKILL.md"));
    CHECK(skill.description.size() <= 120);
  }
}
