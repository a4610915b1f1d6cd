#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mcp/tool.hpp"

namespace dockbridge::mcp {

/// Values that begin with what has been typed so far, best first.
using Completer = std::function<std::vector<std::string>(const std::string& typed, const CallContext& context)>;

struct PromptArgument {
  std::string name;
  std::string description;
  bool required = false;
  Completer complete{};
  std::string complete_tool{};  ///< completions require access to this tool, which shows the same data
};

struct PromptResult {
  json messages = json::array();  ///< of {role, content}
  std::optional<InputRequired> input_required{};
};

/// A text for the model, chosen by a person.
struct Prompt {
  std::string name;
  std::string title;
  std::string description;
  std::vector<PromptArgument> arguments;
  /// Arguments are strings, and all required ones are present. May block.
  std::function<PromptResult(const json& arguments, const CallContext& context)> get;
  std::vector<std::string>
      tools{};  ///< named in the text; a client that may not use all of them does not see the prompt
};

}  // namespace dockbridge::mcp
