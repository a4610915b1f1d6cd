#pragma once

#include <functional>
#include <string_view>

#include "mcp/bulletin.hpp"
#include "mcp/metrics.hpp"
#include "mcp/once.hpp"
#include "mcp/server.hpp"
#include "mcp/state_seal.hpp"
#include "mcp/tasks.hpp"
#include "util/log.hpp"

namespace dockbridge::mcp {

/// State that all conversations of a program share, on every transport. Outlives them. Any thread may use each part.
struct Hub {
  Hub(const Server& the_server, Log& the_log) : server(the_server), log(the_log) {}

  const Server& server;
  Log& log;
  Bulletin bulletin;
  Tasks tasks{bulletin};
  Once once;
  Metrics metrics;
  StateSeal seal;
  /// Whether the reason of a cancellation reports the client's own timeout. Empty means never. Set before the
  /// first conversation.
  std::function<bool(std::string_view reason)> is_client_timeout{};
};

}  // namespace dockbridge::mcp
