#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/files/text/diff.hpp"
#include "agent/files/text/encoding.hpp"

namespace dockbridge::agent {

/// Result of a change to one file.
struct ChangeAnswer {
  std::string path;  ///< path without symbolic links
  std::string revision;
  std::string before;  ///< revision; empty: the file is new
  std::string change;  ///< id, for undoing it; empty: it cannot be undone
  std::uint64_t size = 0;
  Encoding encoding = Encoding::utf8;
  std::vector<std::size_t> replacements;  ///< of each edit
  bool is_whole_write = false;            ///< the owner gave the whole content
  Diff diff;
  std::optional<Diff> since;       ///< changes by others since the owner read the file
  std::vector<std::string> notes;  ///< for people: what could not be kept, was written in place, and so on
};

}  // namespace dockbridge::agent
