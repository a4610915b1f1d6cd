#pragma once

#include <optional>
#include <string>

#include "mcp/message.hpp"

namespace dockbridge::mcp {

/// Makes values into text that a client can bring back but cannot change or make. Good while this object lives.
class StateSeal {
 public:
  StateSeal();
  [[nodiscard]] std::string seal(const json& value) const;
  /// None if it was not sealed here.
  [[nodiscard]] std::optional<json> open(const std::string& sealed) const;

 private:
  std::string m_key;
};

}  // namespace dockbridge::mcp
