#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dockbridge::tools {

/// Another name under which an argument is accepted, without being listed. Models use the names of the tools they know
/// best: those of Claude Code, Codex, Gemini CLI and the predecessor of dockbridge.
struct ArgumentAlias {
  std::string_view alias;
  std::string_view name;
};

/// The aliases of a tool's arguments, including those of nested objects.
std::span<const ArgumentAlias> argument_aliases(std::string_view tool);

/// Whether a tool ignores an argument that it does not know, because models know it from other tools and it has no
/// effect here.
bool is_ignored_argument(std::string_view name);

/// The name among `accepted` that is most similar to `name`; empty if none is similar.
std::string nearest_name(std::string_view name, std::span<const std::string> accepted);

}  // namespace dockbridge::tools
