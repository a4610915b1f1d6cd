#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "mcp/prompt.hpp"

namespace dockbridge::mcp {

struct Resource {
  std::string uri;
  std::string name;
  std::string title;
  std::string description;
  std::string mime_type;
};

struct ResourceTemplate {
  std::string uri_template;  ///< "scheme://path/{variable}", each variable once and within one segment
  std::string name;
  std::string title;
  std::string description;
  std::string mime_type;
  std::map<std::string, Completer> complete{};  ///< by variable
  std::string complete_tool{};  ///< completions require access to this tool; empty means the template's tool
};

/// Resources that a client can read, and subscribe to. Any thread may call; `read` may block.
class ResourceProvider {
 public:
  virtual ~ResourceProvider() = default;
  /// Returns at once, without access to the container.
  [[nodiscard]] virtual std::vector<Resource> resources() const = 0;
  [[nodiscard]] virtual std::vector<ResourceTemplate> templates() const = 0;
  /// The tool that shows the same data. Only callers that may use it may read the resource. Empty means all may.
  [[nodiscard]] virtual std::string tool_for(const std::string& /*uri*/) const { return ""; }
  /// The contents, each {uri, mimeType, text or blob}. The error `resource_not_found` if there is no such resource.
  virtual Result<json> read(const std::string& uri, const CallContext& context) = 0;
  /// Publishes changes until the returned object is destroyed. nullptr if changes cannot be observed.
  virtual std::shared_ptr<void> watch(const std::string& uri, const std::string& owner) = 0;
};

}  // namespace dockbridge::mcp
