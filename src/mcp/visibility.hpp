#pragma once

#include <string>

#include "mcp/catalogue.hpp"
#include "mcp/peer.hpp"

namespace dockbridge::mcp {

/// The part of a catalogue that one caller may see and use. Has no state of its own: any thread may call. Both
/// arguments outlive it.
class Visibility {
 public:
  Visibility(const Catalogue& catalogue, const Caller& caller) : m_catalogue(catalogue), m_caller(caller) {}

  /// Whether the caller is limited to some tools. Lists are then filtered and not cached as public.
  [[nodiscard]] bool is_limited() const { return m_caller.tools.has_value(); }
  /// Whether the server has this tool and the caller may use it.
  [[nodiscard]] bool may_use(const std::string& tool) const;
  /// Whether the caller may read, watch and complete a resource. False if the server has no resources.
  [[nodiscard]] bool may_read(const std::string& uri) const;
  /// nullptr if there is no such skill, or it names a tool that the caller may not use.
  [[nodiscard]] const Skill* skill(const std::string& uri) const;
  /// nullptr if there is no such prompt, or it names a tool that the caller may not use.
  [[nodiscard]] const Prompt* prompt(const std::string& name) const;

  // Filters for the lists of a server. Empty if the caller is not limited.
  [[nodiscard]] Visible tools() const;
  [[nodiscard]] Visible uris() const;
  [[nodiscard]] Visible skills() const;
  [[nodiscard]] Visible prompts() const;

 private:
  [[nodiscard]] bool may_use_all(const std::vector<std::string>& tools) const;

  const Catalogue& m_catalogue;
  const Caller& m_caller;
};

}  // namespace dockbridge::mcp
