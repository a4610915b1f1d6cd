#include "sandbox/upload.hpp"

#include <utility>

#include "util/random.hpp"

namespace dockbridge::sandbox {

Upload::Upload(FileCalls& calls, std::string path)
    : m_calls(&calls), m_path(std::move(path)), m_token(random_token(k_transfer_token_length)) {}

Upload::Upload(Upload&& other) noexcept
    : m_calls(other.m_calls),
      m_path(std::move(other.m_path)),
      m_token(std::exchange(other.m_token, "")),
      m_first(other.m_first) {}

Upload::~Upload() {
  if (!m_token.empty() && !m_first) {
    m_calls->abandon(m_token);
  }
}

Result<void> Upload::append(std::string_view bytes, const CallLimit& limit) {
  const bool first = std::exchange(m_first, false);
  const auto answer = m_calls->exchange(wire::FileStageRequest{m_token, m_path, first, bytes}, limit);
  if (answer) {
    return {};
  }
  Error error = answer.error();
  if (error.outcome_unknown) {  // of this piece; the file itself changes only at the end
    error.message += "; the file was not changed";
    error.outcome_unknown = false;
  }
  return fail(std::move(error));
}

Result<wire::ChangedFile> Upload::finish(const wire::ChangeRequest& request, const wire::NewContent& content,
                                         const CallLimit& limit) {
  auto changed = m_calls->concluded(
      request, m_calls->exchange(wire::FileWriteRequest{request, content, m_token}, limit.without_stop()));
  if (changed) {
    m_token.clear();
  }
  return changed;
}

}  // namespace dockbridge::sandbox
