#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::agent {

/// What names a content: 32 hexadecimal digits, the same for the same bytes. Guards against accidents, not against
/// forgers: who can write to the container's files needs no forgery.
std::string revision_of(std::string_view bytes);
/// Of what is in a file, from its start to its end.
Result<std::string> revision_of_file(int fd);
using wire::is_revision;
using wire::k_revision_length;

/// The same for what comes in pieces.
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
