#include "sandbox/download.hpp"

#include <utility>

#include "util/random.hpp"

namespace dockbridge::sandbox {

namespace {

constexpr std::size_t k_piece_bytes = wire::k_max_body_to_host;

}  // namespace

Result<Download> Download::open(FileCalls& calls, const std::string& path, const std::optional<std::string>& owner,
                                const CallLimit& limit) {
  Download download(calls);
  download.m_token = random_token(k_transfer_token_length);
  auto answer = calls.exchange(wire::FileOpenRequest{path, download.m_token, owner}, limit);
  if (!answer) {
    return fail(answer.error());
  }
  if (owner && !answer->content) {
    return calls.reject(malformed("kind"));
  }
  download.m_size = answer->size;
  download.m_mode = answer->mode;
  download.m_content = std::move(answer->content);
  return download;
}

Download::Download(Download&& other) noexcept
    : m_calls(other.m_calls),
      m_token(std::exchange(other.m_token, "")),
      m_content(std::move(other.m_content)),
      m_size(other.m_size),
      m_mode(other.m_mode),
      m_received(other.m_received),
      m_checked(other.m_checked),
      m_revision(std::move(other.m_revision)) {}

Download::~Download() {
  if (!m_token.empty()) {
    m_calls->abandon(m_token);
  }
}

Result<std::optional<Download::Piece>> Download::next(const CallLimit& limit) {
  if (!m_revision.empty()) {
    return std::nullopt;
  }
  auto answer = m_calls->exchange(wire::FileNextRequest{m_token, k_piece_bytes}, limit);
  if (!answer) {
    return fail(answer.error());
  }
  auto piece = checked_piece(std::move(*answer));
  if (!piece) {
    return m_calls->reject(piece.error());
  }
  return std::move(*piece);
}

/// Every reply must advance the copy or its check, so that the copy ends.
Result<Download::Piece> Download::checked_piece(wire::FileNextAnswer answer) {
  Piece piece{answer.offset, std::move(answer.bytes)};
  if (piece.offset < m_received || piece.offset > m_size) {
    return fail(malformed("offset"));
  }
  if (piece.bytes.size() > m_size - piece.offset) {
    return fail(malformed("body"));
  }
  if (answer.checked < m_checked || answer.checked > m_size) {
    return fail(malformed("checked"));
  }
  const std::uint64_t received = piece.offset + piece.bytes.size();
  const bool is_complete = !answer.revision.empty();
  if (is_complete ? received != m_size : received == m_received && answer.checked == m_checked) {
    return fail(malformed(is_complete ? "revision" : "checked"));
  }
  m_received = received;
  m_checked = answer.checked;
  if (is_complete) {
    m_revision = std::move(answer.revision);
    m_token.clear();
  }
  return piece;
}

}  // namespace dockbridge::sandbox
