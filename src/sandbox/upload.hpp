#pragma once

#include <string>
#include <string_view>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/file_calls.hpp"
#include "wire/file_change_messages.hpp"

namespace dockbridge::sandbox {

/// A new content of a file that is sent in pieces. The file changes at `finish`, or not at all without it.
class Upload {
 public:
  Upload(FileCalls& calls, std::string path);
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  Upload(Upload&& other) noexcept;
  Upload& operator=(Upload&&) = delete;

  /// At most a few megabytes at a time.
  Result<void> append(std::string_view bytes, const CallLimit& limit = {});
  /// `content` describes the content; its bytes have been sent.
  Result<wire::ChangedFile> finish(const wire::ChangeRequest& request, const wire::NewContent& content,
                                   const CallLimit& limit = {});

 private:
  FileCalls* m_calls;
  std::string m_path;
  std::string m_token;  ///< empty when the upload is over
  bool m_first = true;
};

}  // namespace dockbridge::sandbox
