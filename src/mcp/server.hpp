#pragma once

#include "mcp/catalogue.hpp"
#include "mcp/lists.hpp"
#include "mcp/result_format.hpp"

namespace dockbridge::mcp {

/// Public description of a server, and what it offers, in the form of each revision. Has neither connections nor
/// state, so any thread may use it.
struct Server {
  Server(ServerInfo the_info, Offer offer)
      : info(std::move(the_info)), catalogue(std::move(offer)), format(info), lists(catalogue, format) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // `tools`: the tools that the client may see.
  [[nodiscard]] json initialize_result(Revision revision, const Visible& tools = {}) const;
  [[nodiscard]] json discover_result(const Visible& tools = {}) const;

  const ServerInfo info;
  const Catalogue catalogue;
  const ResultFormat format;
  const Lists lists;
};

}  // namespace dockbridge::mcp
