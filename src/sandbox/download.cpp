#include <fmt/format.h>

#include <utility>

#include "sandbox/files.hpp"
#include "sandbox/sandbox.hpp"
#include "util/random.hpp"
#include "util/text.hpp"

namespace dockbridge::sandbox {

namespace {

constexpr std::size_t k_download_token_length = 16;
constexpr std::size_t k_piece_bytes = wire::k_max_body_to_host;

}  // namespace

Result<Files::Download> Files::open_download(const std::string& path, const std::optional<std::string>& owner,
                                             WholeFile* about, const CallLimit& limit) {
  Download download(*this);
  download.m_token = random_token(k_download_token_length);
  const auto answer = exchange(wire::FileOpenRequest{path, download.m_token, owner}, limit);
  if (!answer) {
    return fail(answer.error());
  }
  download.m_size = answer->size;
  download.m_mode = answer->mode;
  if (about != nullptr) {
    if (!answer->content) {
      return reject(malformed("kind"));
    }
    about->kind = answer->content->kind;
    about->type = answer->content->type;
  }
  return download;
}

Result<Files::Download> Files::download(const std::string& path, const CallLimit& limit) {
  return open_download(path, std::nullopt, nullptr, limit);
}

Result<WholeFile> Files::whole(const std::string& path, const std::string& owner, std::uint64_t max_bytes,
                               const CallLimit& limit) {
  WholeFile file;
  auto download = open_download(path, owner, &file, limit);
  if (!download) {
    return fail(download.error());
  }
  if (download->size() > max_bytes) {
    return fail(ErrorCode::too_large, fmt::format("File is too large: {}", human_bytes(download->size())),
                "Read a part of it with file_read");
  }
  file.bytes.resize(download->size());
  while (true) {
    const auto piece = download->next(limit);
    if (!piece) {
      return fail(piece.error());
    }
    if (!*piece) {
      break;
    }
    file.bytes.replace((*piece)->offset, (*piece)->bytes.size(), (*piece)->bytes);
  }
  file.revision = download->revision();
  return file;
}

Files::Download::Download(Download&& other) noexcept
    : m_files(other.m_files),
      m_token(std::exchange(other.m_token, "")),
      m_size(other.m_size),
      m_mode(other.m_mode),
      m_received(other.m_received),
      m_checked(other.m_checked),
      m_revision(std::move(other.m_revision)) {}

Files::Download::~Download() {
  if (!m_token.empty()) {
    // If this request is lost, the agent closes the file when the connection ends.
    m_files->m_sandbox.post(wire::FileAbandonRequest{m_token}.to_json());
  }
}

Result<std::optional<Files::Download::Piece>> Files::Download::next(const CallLimit& limit) {
  if (!m_revision.empty()) {
    return std::nullopt;
  }
  auto answer = m_files->exchange(wire::FileNextRequest{m_token, k_piece_bytes}, limit);
  if (!answer) {
    return fail(answer.error());
  }
  auto piece = checked_piece(std::move(*answer));
  if (!piece) {
    return m_files->reject(piece.error());
  }
  return std::move(*piece);
}

/// Every reply must advance the copy or its check, so that the copy ends.
Result<Files::Download::Piece> Files::Download::checked_piece(wire::FileNextAnswer answer) {
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
