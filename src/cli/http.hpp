#pragma once

#include <memory>

#include "cli/bridge.hpp"
#include "cli/options.hpp"
#include "mcp/call_scheduler.hpp"
#include "mcp/hub.hpp"
#include "mcp/transport/http_server.hpp"

namespace dockbridge::cli {

/// The token file that HTTP will use; empty if HTTP needs none.
std::string token_file_of(const Options& options);
/// Serves HTTP with the tokens that the options name. Creates a token at the first start, and logs its path.
Result<std::unique_ptr<mcp::HttpServer>> start_http(const Options& options, Bridge& bridge, mcp::Hub& hub,
                                                    mcp::CallScheduler& scheduler);

}  // namespace dockbridge::cli
