#include <fmt/format.h>

#include <utility>

#include "sandbox/answer_fields.hpp"
#include "sandbox/answers.hpp"
#include "sandbox/files.hpp"
#include "sandbox/sandbox.hpp"
#include "util/random.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

constexpr milliseconds k_patience{60'000};
constexpr std::size_t k_token_length = 16;
constexpr std::size_t k_piece_bytes = wire::k_max_body_to_host;
constexpr std::uint64_t k_max_mode = 0777777;

/// Throws if the reply violates the protocol.
void describe(WholeFile& file, const json& head) {
  const std::string kind = word_in(head, "kind", {"text", "image", "binary"});
  file.kind = kind == "text" ? FileKind::text : kind == "image" ? FileKind::image : FileKind::binary;
  if (file.kind == FileKind::image) {
    file.type = word_in(head, "type", {wire::k_image_types.begin(), wire::k_image_types.end()});
  }
}

}  // namespace

Result<Files::Download> Files::open_download(const std::string& path, const CallLimit& limit, const std::string* owner,
                                             WholeFile* about) {
  Download download(*this);
  download.m_token = random_token(k_token_length);
  json head = {{"op", "file.open"}, {"path", path}, {"staging", download.m_token}};
  if (owner != nullptr) {
    head["owner"] = *owner;
  }
  const auto answer = ask(std::move(head), {}, k_patience, Repeat::once, limit);
  if (!answer) {
    return fail(answer.error());
  }
  try {
    download.m_size = number_in(answer->head, "size", k_max_file_bytes);
    download.m_mode = static_cast<unsigned>(number_in(answer->head, "mode", k_max_mode));
    if (about != nullptr) {
      describe(*about, answer->head);
    }
  } catch (const std::exception&) {
    return m_sandbox.drop_session(violation());
  }
  return download;
}

Result<Files::Download> Files::download(const std::string& path, const CallLimit& limit) {
  return open_download(path, limit, nullptr, nullptr);
}

Result<WholeFile> Files::whole(const std::string& path, const std::string& owner, std::uint64_t max_bytes,
                               const CallLimit& limit) {
  WholeFile file;
  auto download = open_download(path, limit, &owner, &file);
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
    m_files->m_sandbox.post({{"op", "file.abandon"}, {"staging", m_token}});
  }
}

Result<std::optional<Files::Download::Piece>> Files::Download::next(const CallLimit& limit) {
  if (!m_revision.empty()) {
    return std::nullopt;
  }
  auto answer = m_files->ask({{"op", "file.next"}, {"staging", m_token}, {"max", k_piece_bytes}}, {}, k_patience,
                             Repeat::never, limit);
  if (!answer) {
    return fail(answer.error());
  }
  auto piece = checked_piece(std::move(*answer));
  if (!piece) {
    return m_files->m_sandbox.drop_session(piece.error());
  }
  return std::move(*piece);
}

/// Every reply must advance the copy or its check, so that the copy ends.
Result<Files::Download::Piece> Files::Download::checked_piece(wire::Frame frame) {
  std::uint64_t checked = 0;
  Piece piece;
  try {
    piece.offset = number_in(frame.head, "offset", k_max_file_bytes);
    checked = number_in(frame.head, "checked", k_max_file_bytes);
    m_revision = frame.head.contains("revision") ? name_in(frame.head, "revision", wire::is_revision) : "";
  } catch (const std::exception&) {
    return fail(violation());
  }
  piece.bytes = std::move(frame.body);
  const bool is_within = piece.offset >= m_received && piece.offset <= m_size &&
                         piece.bytes.size() <= m_size - piece.offset && checked >= m_checked && checked <= m_size;
  if (!is_within) {
    return fail(violation());
  }
  const std::uint64_t received = piece.offset + piece.bytes.size();
  const bool is_complete = !m_revision.empty();
  if (is_complete ? received != m_size : received == m_received && checked == m_checked) {
    return fail(violation());
  }
  m_received = received;
  m_checked = checked;
  if (is_complete) {
    m_token.clear();
  }
  return piece;
}

}  // namespace dockbridge::sandbox
