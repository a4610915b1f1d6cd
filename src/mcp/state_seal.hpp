#pragma once

#include <optional>
#include <string>

#include "mcp/message.hpp"

namespace dockbridge::mcp {

/// Signs values that a client stores and sends back, but can neither change nor forge. Valid while this object exists.
class StateSeal {
 public:
  StateSeal();
  [[nodiscard]] std::string seal(const json& value) const;
  /// nullopt if this object has not signed it.
  [[nodiscard]] std::optional<json> open(const std::string& sealed) const;

 private:
  std::string m_key;
};

}  // namespace dockbridge::mcp
