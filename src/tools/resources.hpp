#pragma once

#include <memory>
#include <string>

#include "mcp/bulletin.hpp"
#include "mcp/resource.hpp"
#include "sandbox/sandbox.hpp"
#include "util/quota.hpp"

namespace dockbridge::tools {

struct SessionUri;

/// The container's facts and files, and the caller's processes and their output, as resources. Lists do not contact the
/// container. A subscriber to a process's output is notified when there is more of it, or when the process has ended. A
/// subscriber to a file is notified when the file changes.
class SandboxResources : public mcp::ResourceProvider {
 public:
  explicit SandboxResources(sandbox::Sandbox& sandbox) : m_sandbox(sandbox) {}

  /// Sets the receiver of notifications. Must be called before the first subscription.
  void publish_to(mcp::Bulletin& bulletin) { m_bulletin = &bulletin; }

  [[nodiscard]] std::vector<mcp::Resource> resources() const override;
  [[nodiscard]] std::vector<mcp::ResourceTemplate> templates() const override;
  [[nodiscard]] std::string tool_for(const std::string& uri) const override;
  Result<mcp::json> read(const std::string& uri, const mcp::CallContext& context) override;
  std::shared_ptr<void> watch(const std::string& uri, const std::string& owner) override;

 private:
  Result<mcp::json> read_output(const std::string& uri, const std::string& process, sandbox::Stream stream,
                                const mcp::CallContext& context);
  Result<mcp::json> read_file(const std::string& uri, const std::string& path, const mcp::CallContext& context);

  Result<mcp::json> read_session(const std::string& uri, const SessionUri& wanted, const mcp::CallContext& context);

  sandbox::Sandbox& m_sandbox;
  mcp::Bulletin* m_bulletin = nullptr;
  static constexpr std::size_t k_max_watches_per_owner = 32;  // each has a thread; owners are few
  Quota m_watches{k_max_watches_per_owner};
};

/// The caller's process ids, newest first.
mcp::Completer complete_process_id(sandbox::Sandbox& sandbox);

}  // namespace dockbridge::tools
