#pragma once

#include <string>

#include "agent/files/file_space.hpp"
#include "agent/files/text/text_page.hpp"
#include "error/error.hpp"
#include "wire/file_messages.hpp"

namespace dockbridge::agent {

/// Finds a regular file. Errors of `FileSpace::find` and `expect_regular`.
Result<ResolvedFile> find_regular(const FileSpace& space, const std::string& path);

wire::FileFacts describe(const ResolvedFile& file);
/// `content` must be the content of the file.
wire::ContentFacts describe_content(const ResolvedFile& file, const FileContent& content);

}  // namespace dockbridge::agent
