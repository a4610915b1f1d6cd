#pragma once

#include <memory>

#include "cli/options.hpp"
#include "mcp/hub.hpp"
#include "mcp/transport/http_server.hpp"
#include "sandbox/sandbox.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::cli {

/// Serves HTTP as the options say, with the tokens they name; makes a token at the first start and says where it is.
Result<std::unique_ptr<mcp::HttpServer>> start_http(const Options& options, sandbox::Sandbox& sandbox, mcp::Hub& hub,
                                                    WorkerPool& pool);

}  // namespace dockbridge::cli
