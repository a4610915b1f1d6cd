#include "agent/files/service/copy_requests.hpp"

#include <algorithm>
#include <utility>

#include "agent/files/service/file_description.hpp"
#include "agent/files/text/text_page.hpp"

namespace dockbridge::agent {

Result<wire::FileOpenAnswer> CopyRequests::open(const FileSpace& space, FileChanger& changer,
                                                const wire::FileOpenRequest& request) {
  close();
  const auto file = find_regular(space, request.path);
  auto download = file ? Download::open(*file) : fail(file.error());
  if (!download) {
    return fail(download.error());
  }
  wire::FileOpenAnswer answer{describe(*file)};
  answer.size = (*download)->size();
  if (request.owner) {
    auto content = read_content(*file, {.limit = 0});
    if (!content) {
      return fail(content.error());
    }
    answer.content = describe_content(*file, *content);
    changer.note_seen(*request.owner, file->path, {content->revision}, std::move(content->whole));
  }
  m_download = std::move(*download);
  return answer;
}

Result<wire::FileNextAnswer> CopyRequests::next(const wire::FileNextRequest& request) {
  if (!m_download) {
    return fail(ErrorCode::nothing_staged, "No file is open for this copy");
  }
  auto piece = m_download->next(std::min(request.max, wire::k_max_body_to_host));
  if (!piece) {
    close();
    return fail(piece.error());
  }
  wire::FileNextAnswer answer{piece->offset, piece->checked, "", std::move(piece->bytes)};
  if (piece->complete) {
    answer.revision = m_download->revision();
    close();
  }
  return answer;
}

}  // namespace dockbridge::agent
