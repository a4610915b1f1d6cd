#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "agent/files/file_space.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// What was found, in the form in which it travels.
struct Findings {
  nlohmann::json head;
  std::string body;
};

/// Does what the head of a request `file.list`, `file.glob` or `file.grep` asks for.
Result<Findings> run_search(const FileSpace& space, const nlohmann::json& head);

}  // namespace dockbridge::agent
