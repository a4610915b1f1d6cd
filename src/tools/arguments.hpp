#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mcp/message.hpp"
#include "util/clock.hpp"
#include "util/error.hpp"

namespace dockbridge::tools {

/// Reads a tool's arguments one by one and remembers the first thing that is wrong with them.
/// Call `error` when all have been read; names that nobody read are then `unknown`.
class Arguments {
 public:
  explicit Arguments(const mcp::json& values) : m_values(values) {}

  std::string required_text(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  bool flag(const std::string& name, bool otherwise);
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t least, std::int64_t most);
  /// Seconds, fractions allowed.
  std::optional<milliseconds> duration(const std::string& name, double least_seconds, double most_seconds);
  /// An object of strings, as environment variables are given.
  std::vector<std::pair<std::string, std::string>> environment(const std::string& name);

  void reject(const std::string& name, const std::string& problem);
  [[nodiscard]] const std::optional<Error>& error() const { return m_error; }
  [[nodiscard]] std::vector<std::string> unknown() const;

 private:
  const mcp::json* find(const std::string& name);

  const mcp::json& m_values;
  std::set<std::string> m_read;
  std::optional<Error> m_error;
};

}  // namespace dockbridge::tools
