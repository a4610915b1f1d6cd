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

/// New content of a file: bytes in memory, or the content of another file. Borrows them.
class NewBytes {
 public:
  explicit NewBytes(std::string_view bytes);
  /// Reads the file once, for its revision.
  static Result<NewBytes> of_file(int fd);

  [[nodiscard]] const std::string& revision() const { return m_revision; }
  [[nodiscard]] std::uint64_t size() const { return m_size; }
  /// nullopt if they are not in memory.
  [[nodiscard]] std::optional<std::string_view> bytes() const {
    return m_fd < 0 ? std::optional(m_bytes) : std::nullopt;
  }
  [[nodiscard]] Result<void> append_to(TemporaryFile& file) const;
  [[nodiscard]] Result<void> keep_in(ContentStore& store) const;

 private:
  NewBytes() = default;

  std::string_view m_bytes;
  int m_fd = -1;  // of the file with the bytes; -1: they are in memory
  std::uint64_t m_size = 0;
  std::string m_revision;
};

/// Writes contents to files: atomically where that is possible, otherwise in place so that a crash can be recovered.
/// Owns the store that this needs.
class FileWriter {
 public:
  /// For people: what could not be kept, and whether the file was written in place.
  using Notes = std::vector<std::string>;

  FileWriter(int state_fd, ContentStore store) : m_state_fd(state_fd), m_store(std::move(store)) {}

  ContentStore& store() { return m_store; }
  /// Spare file for the next replacement.
  SpareFile& spare() { return m_spare; }

  /// Sets `mode` if it is given. Otherwise mode, owner and attributes are kept. Writes in place only if the current
  /// content is in the store; error `no_backup` otherwise.
  Result<Notes> write(const CurrentFile& current, const NewBytes& content, const std::optional<mode_t>& mode);
  /// The same for a content in a temporary file beside `current`, which has its own journal.
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
  std::unique_ptr<WriteJournal> m_journal;  // created when it is first needed
};

}  // namespace dockbridge::agent
