#include "agent/files/service/file_description.hpp"

#include <optional>
#include <utility>

#include "agent/files/image/image_header.hpp"
#include "agent/files/text/binary_kind.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

namespace {

/// A JPEG states its size after the data that cameras add: previews, profiles.
constexpr std::size_t k_image_header_bytes = 1024 * 1024;

std::optional<ImageHeader> image_header(const ResolvedFile& file, const FileContent& content) {
  const auto header = image_header_of(content.whole ? *content.whole : content.start);
  const auto fd = header || content.whole ? fail(ErrorCode::bad_image, "") : file.open_for_reading();
  const auto start = fd ? read_at(fd->get(), 0, k_image_header_bytes, file.path) : fail(fd.error());
  return start ? image_header_of(*start) : header;
}

}  // namespace

Result<ResolvedFile> find_regular(const FileSpace& space, const std::string& path) {
  auto file = space.find(path);
  if (!file) {
    return fail(file.error());
  }
  const auto regular = expect_regular(*file);
  return regular ? std::move(file) : fail(regular.error());
}

wire::FileFacts describe(const ResolvedFile& file) {
  return {file.path, static_cast<std::uint64_t>(file.info.st_size), file.info.st_mode & wire::k_permissions,
          file_milliseconds(file.info.st_mtim)};
}

wire::ContentFacts describe_content(const ResolvedFile& file, const FileContent& content) {
  wire::ContentFacts facts;
  facts.revision = content.revision;
  if (content.page) {
    return facts;
  }
  const auto image = image_type_of(content.start);
  if (!image) {
    facts.kind = wire::FileKind::binary;
    facts.type = describe_binary(content.start);
    return facts;
  }
  const auto header = image_header(file, content);
  if (content.whole && !(header && has_image_end(*content.whole))) {
    facts.kind = wire::FileKind::binary;  // clients and models reject a damaged image
    facts.type = "a damaged or incomplete image (" + *image + ")";
    return facts;
  }
  facts.kind = wire::FileKind::image;
  facts.type = *image;
  if (header) {
    facts.width = header->is_turned() ? header->height : header->width;
    facts.height = header->is_turned() ? header->width : header->height;
  }
  return facts;
}

}  // namespace dockbridge::agent
