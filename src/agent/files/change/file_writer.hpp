#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/change/content_store.hpp"
#include "agent/files/change/current_file.hpp"
#include "agent/files/change/spare_file.hpp"
#include "agent/files/change/temporary_file.hpp"
#include "agent/files/change/write_journal.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// What a file shall hold: bytes that are in memory, or those of another file, from its start to its end. Borrows them.
class NewBytes {
 public:
  explicit NewBytes(std::string_view bytes);
  /// Reads it once, for its revision.
  static Result<NewBytes> of_file(int fd);

  [[nodiscard]] const std::string& revision() const { return m_revision; }
  [[nodiscard]] std::uint64_t size() const { return m_size; }
  /// None: they are not in memory.
  [[nodiscard]] std::optional<std::string_view> bytes() const {
    return m_fd < 0 ? std::optional(m_bytes) : std::nullopt;
  }
  [[nodiscard]] Result<void> append_to(TemporaryFile& file) const;
  [[nodiscard]] Result<void> keep_in(ContentStore& store) const;

 private:
  NewBytes() = default;

  std::string_view m_bytes;
  int m_fd = -1;  // whose bytes they are, if they are not in memory
  std::uint64_t m_size = 0;
  std::string m_revision;
};

/// Puts contents into files: in one step wherever that is possible, else in place, in such a way that a crash can be
/// mended. Owns the store that this takes.
class FileWriter {
 public:
  /// What a person should know of how it went.
  using Notes = std::vector<std::string>;

  FileWriter(int state_fd, ContentStore store) : m_state_fd(state_fd), m_store(std::move(store)) {}

  ContentStore& store() { return m_store; }
  /// For the next file that is replaced.
  SpareFile& spare() { return m_spare; }

  /// A mode that is given is set; else it stays, as do owner and attributes. What is there is only written in place if
  /// it is in the store; error `no_backup` otherwise.
  Result<Notes> write(const CurrentFile& current, const NewBytes& content, const std::optional<mode_t>& mode);
  /// The same for a content that is in a temporary file at the place of `current`, which has another journal.
  Result<Notes> write_staged(const CurrentFile& current, TemporaryFile& staged, const NewBytes& content,
                             const std::optional<mode_t>& mode);

 private:
  Result<WriteJournal*> journal();
  static Result<Notes> publish(const CurrentFile& current, TemporaryFile& file, const std::optional<mode_t>& mode);
  Result<Notes> write_in_place(const CurrentFile& current, const std::string& why, const NewBytes& content,
                               const std::optional<mode_t>& mode);

  int m_state_fd;
  ContentStore m_store;
  SpareFile m_spare;
  std::unique_ptr<WriteJournal> m_journal;  // made when it is first needed
};

}  // namespace dockbridge::agent
