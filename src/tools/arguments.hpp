#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error/error.hpp"
#include "mcp/message.hpp"
#include "tools/argument_names.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

/// Reads a tool's arguments one by one and remembers the first problem. A tool reads all of them before it checks
/// `error`, which then also reports an argument that was not read. Numbers and booleans may come as strings.
class Arguments {
 public:
  /// `aliases` are accepted in place of the names that are read. `prefix` stands before the names in errors.
  explicit Arguments(const mcp::json& values, std::span<const ArgumentAlias> aliases = {}, std::string prefix = "")
      : m_values(values), m_aliases(aliases), m_prefix(std::move(prefix)) {}

  /// An empty `next_step` asks for the argument.
  std::string required_text(const std::string& name, const std::string& next_step = "");
  /// The same without a copy. The view is valid as long as the arguments.
  std::string_view required_view(const std::string& name, const std::string& next_step = "");
  std::optional<std::string> text(const std::string& name);
  /// A text, or a number as text.
  std::optional<std::string> text_or_number(const std::string& name);
  bool flag(const std::string& name, bool otherwise);
  /// The largest number, if the argument is given under several names.
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t least, std::int64_t most);
  std::optional<double> number(const std::string& name, double least, double most, std::string_view unit = "");
  /// Seconds, fractions allowed.
  std::optional<milliseconds> duration(const std::string& name, double least_seconds, double most_seconds);
  /// An object of strings, as environment variables are given.
  std::vector<std::pair<std::string, std::string>> environment(const std::string& name);

  /// An array of strings; a single string counts as an array of one.
  std::vector<std::string> texts(const std::string& name);
  /// The arguments in an object; nullopt if it is absent. `adopt` reports their problems.
  std::optional<Arguments> object(const std::string& name);
  /// The same for an array of objects.
  std::vector<Arguments> objects(const std::string& name);
  void adopt(const Arguments& nested);
  /// The argument is accepted, but errors do not suggest it.
  void keep_unlisted(const std::string& name);
  [[nodiscard]] bool has(const std::string& name);
  [[nodiscard]] bool is_object(const std::string& name);
  [[nodiscard]] bool is_array(const std::string& name);

  void reject(const std::string& name, const std::string& problem);
  /// The first problem, or the first argument that was not read.
  [[nodiscard]] std::optional<Error> error() const;

 private:
  /// A value and the name or alias that it was given under.
  struct Given {
    std::string name;
    const mcp::json* value;
  };
  /// Values under the name and its aliases, in this order.
  std::vector<Given> find_all(const std::string& name);
  /// The first of them, or nullptr.
  const mcp::json* find(const std::string& name);
  /// nullptr if it is absent, or not a string, which is rejected.
  const std::string* find_text(const std::string& name);
  [[nodiscard]] std::optional<Error> unknown_argument() const;

  const mcp::json& m_values;
  std::span<const ArgumentAlias> m_aliases;
  std::string m_prefix;
  std::set<std::string> m_read;                   // names and aliases
  std::map<std::string, std::string> m_given_as;  // by name: the alias that was given instead
  std::vector<std::string> m_accepted;
  std::optional<Error> m_nested_unknown;
  std::optional<Error> m_error;
  bool m_is_missing = false;  // `m_error` is about an absent argument, which may have been passed under a wrong name
};

}  // namespace dockbridge::tools
