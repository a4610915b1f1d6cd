#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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
  /// `prefix` stands before the names in errors.
  explicit Arguments(const mcp::json& values, std::string prefix = "")
      : m_values(values), m_prefix(std::move(prefix)) {}

  std::string required_text(const std::string& name);
  /// The same, not copied: it lives as long as the arguments.
  std::string_view required_view(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  bool flag(const std::string& name, bool otherwise);
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t least, std::int64_t most);
  /// Seconds, fractions allowed.
  std::optional<milliseconds> duration(const std::string& name, double least_seconds, double most_seconds);
  /// An object of strings, as environment variables are given.
  std::vector<std::pair<std::string, std::string>> environment(const std::string& name);

  std::vector<std::string> texts(const std::string& name);
  /// The arguments in an object; none if it is not there. What is wrong with them has to be handed on with `adopt`.
  std::optional<Arguments> object(const std::string& name);
  /// Likewise of an array of objects.
  std::vector<Arguments> objects(const std::string& name);
  void adopt(const Arguments& nested);
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] bool is_object(const std::string& name) const;
  [[nodiscard]] bool is_text(const std::string& name) const;

  void reject(const std::string& name, const std::string& problem);
  [[nodiscard]] const std::optional<Error>& error() const { return m_error; }
  [[nodiscard]] std::vector<std::string> unknown() const;

 private:
  const mcp::json* find(const std::string& name);
  /// Null if there is none, or it is no string, which is rejected.
  const std::string* find_text(const std::string& name);

  const mcp::json& m_values;
  std::string m_prefix;
  std::set<std::string> m_read;
  std::vector<std::string> m_nested_unknown;
  std::optional<Error> m_error;
};

}  // namespace dockbridge::tools
