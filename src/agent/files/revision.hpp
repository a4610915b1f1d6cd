#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::agent {

/// Identifies content: 32 hexadecimal digits, the same for the same bytes. Not collision-resistant against an attacker,
/// who could write to the files of the container anyway.
std::string revision_of(std::string_view bytes);
/// Revision of the content of a file.
Result<std::string> revision_of_file(int fd);
using wire::is_revision;
using wire::k_revision_length;

/// Computes the revision of content that is fed in pieces.
class RevisionHash {
 public:
  RevisionHash();
  ~RevisionHash();
  RevisionHash(const RevisionHash&) = delete;
  RevisionHash& operator=(const RevisionHash&) = delete;

  void feed(std::string_view bytes);
  [[nodiscard]] std::string revision() const;

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace dockbridge::agent
