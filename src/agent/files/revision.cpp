#include "agent/files/revision.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

std::string text_of(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string revision_of(std::string_view bytes) {
  return text_of(XXH3_128bits(bytes.data(), bytes.size()));
}

Result<std::string> revision_of_file(int fd) {
  RevisionHash hash;
  const auto read = read_pieces(fd, [&](std::string_view piece) {
    hash.feed(piece);
    return Result<void>();
  });
  return read ? Result<std::string>(hash.revision()) : fail(read.error());
}

struct RevisionHash::State {
  XXH3_state_t hash;
};

RevisionHash::RevisionHash() : m_state(std::make_unique<State>()) {
  XXH3_128bits_reset(&m_state->hash);
}

RevisionHash::~RevisionHash() = default;

void RevisionHash::feed(std::string_view bytes) {
  XXH3_128bits_update(&m_state->hash, bytes.data(), bytes.size());
}

std::string RevisionHash::revision() const {
  return text_of(XXH3_128bits_digest(&m_state->hash));
}

}  // namespace dockbridge::agent
