#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/file_calls.hpp"
#include "wire/file_read_messages.hpp"

namespace dockbridge::sandbox {

/// One open file of the container, read from its start to its end. The agent checks at the end that all pieces come
/// from one version of the file. The host checks that pieces are in order, do not overlap, and stay within the
/// announced size.
class Download {
 public:
  struct Piece {
    std::uint64_t offset = 0;  ///< the bytes between the previous piece and this one are a hole
    std::string bytes;         ///< may be empty
  };

  /// With an owner, the file counts as read by that owner, and `content` is set.
  static Result<Download> open(FileCalls& calls, const std::string& path, const std::optional<std::string>& owner,
                               const CallLimit& limit);
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;
  Download(Download&& other) noexcept;
  Download& operator=(Download&&) = delete;

  [[nodiscard]] std::uint64_t size() const { return m_size; }
  [[nodiscard]] unsigned mode() const { return m_mode; }
  [[nodiscard]] const std::optional<wire::ContentFacts>& content() const { return m_content; }
  /// nullopt after the last piece. Error `file_changed` if the file was written to during the copy.
  Result<std::optional<Piece>> next(const CallLimit& limit);
  /// Revision of the whole content; empty before the last piece.
  [[nodiscard]] const std::string& revision() const { return m_revision; }

 private:
  explicit Download(FileCalls& calls) : m_calls(&calls) {}
  Result<Piece> checked_piece(wire::FileNextAnswer answer);

  FileCalls* m_calls;
  std::string m_token{};  ///< empty when the copy is over
  std::optional<wire::ContentFacts> m_content{};
  std::uint64_t m_size = 0;
  unsigned m_mode = 0;
  std::uint64_t m_received = 0;  ///< bytes received, holes included
  std::uint64_t m_checked = 0;   ///< bytes that the agent has checked
  std::string m_revision{};
};

}  // namespace dockbridge::sandbox
