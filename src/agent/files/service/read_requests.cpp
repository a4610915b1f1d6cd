#include "agent/files/service/read_requests.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/files/image/image_header.hpp"
#include "agent/files/image/image_scale.hpp"
#include "agent/files/revision.hpp"
#include "agent/files/service/file_description.hpp"
#include "agent/files/text/text_page.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_image_reserve = 4096;

void add_page(wire::FileReadAnswer& answer, TextPage page) {
  answer.text = std::move(page.text);
  answer.lines = page.lines;
  answer.first_line = page.first_line;
  answer.total_lines = page.total_lines;
  answer.more = page.more;
  answer.cut_lines = page.cut_lines;
  answer.encoding = name_of(page.encoding);
  answer.line_ends = page.ends;
  answer.final_newline = page.final_newline;
}

/// Drops the last lines of a page until it fits with its line numbers. The first line stays.
void shorten(TextPage& page, std::size_t max_bytes) {
  const std::int64_t last_number = page.first_line + static_cast<std::int64_t>(page.lines);
  if (page.text.size() + page.lines * (fmt::format_int(last_number).size() + 1) <= max_bytes) {
    return;
  }
  std::size_t lines = 0;
  std::size_t at = 0;
  for (std::size_t shown = 0; at < page.text.size(); ++lines) {
    const std::size_t end = std::min(page.text.find('\n', at), page.text.size() - 1) + 1;
    const std::size_t digits = fmt::format_int(page.first_line + static_cast<std::int64_t>(lines)).size();
    shown += digits + 1 + (end - at);
    if (shown > max_bytes && lines > 0) {
      break;
    }
    at = end;
  }
  page.more = page.more || at < page.text.size();
  page.text.resize(at);
  page.lines = std::min(lines, page.lines);
}

/// Number of lines that the owner has seen with this page, after `before` lines of the same content.
std::uint64_t lines_seen(std::uint64_t before, const TextPage& page, const wire::FileReadRequest& request) {
  const auto first = static_cast<std::uint64_t>(page.first_line - 1);
  if (request.column > 0 || first > before) {
    return before;
  }
  return page.more ? std::max(before, first + page.lines) : SeenContent::k_all_lines;
}

}  // namespace

Result<wire::FileReadAnswer> read_page(const FileSpace& space, FileChanger& changer,
                                       const wire::FileReadRequest& request) {
  const auto file = find_regular(space, request.path);
  if (!file) {
    return fail(file.error());
  }
  auto content = read_content(*file, {request.offset, request.limit, request.column, request.max_line_characters,
                                      std::min(request.max_bytes, wire::k_max_page_bytes)});
  if (!content) {
    return fail(content.error());
  }
  wire::FileReadAnswer answer{describe(*file), describe_content(*file, *content)};
  answer.size = content->size;
  SeenContent seen{content->revision};
  if (content->page) {
    shorten(*content->page, request.max_bytes);
  }
  if (content->page && (content->page->more || request.offset != 0 || request.column > 0)) {
    const auto before = changer.last_seen(request.owner, file->path);
    const bool is_same = before && before->revision == content->revision;
    seen.lines = lines_seen(is_same ? before->lines : 0, *content->page, request);
    if (before && !is_same && request.offset != 0 && !content->revision.empty()) {
      answer.previous_revision = before->revision;
    }
  }
  changer.note_seen(request.owner, file->path, seen, std::move(content->whole));
  if (content->page) {
    add_page(answer, std::move(*content->page));
  }
  return answer;
}

Result<wire::FileBytesAnswer> read_bytes(const FileSpace& space, const wire::FileBytesRequest& request) {
  const auto file = find_regular(space, request.path);
  const auto fd = file ? file->open_for_reading() : fail(file.error());
  if (!fd) {
    return fail(fd.error());
  }
  wire::FileBytesAnswer answer{describe(*file), {}};
  answer.bytes.resize(std::min(request.max, wire::k_max_body_to_host));
  const ssize_t got = ::pread(fd->get(), answer.bytes.data(), answer.bytes.size(), static_cast<off_t>(request.offset));
  if (got < 0 && errno != EAGAIN) {
    return fail(file_error(file->path, errno));
  }
  answer.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return answer;
}

Result<wire::FileImageAnswer> read_image(const FileSpace& space, FileChanger& changer,
                                         const wire::FileImageRequest& request) {
  const auto file = find_regular(space, request.path);
  const auto fd = file ? file->open_for_reading() : fail(file.error());
  const auto bytes = fd ? read_at(fd->get(), 0, k_max_scaled_file_bytes + 1, file->path) : fail(fd.error());
  if (!bytes) {
    return fail(bytes.error());
  }
  if (bytes->size() > k_max_scaled_file_bytes) {
    return fail(ErrorCode::too_large, "Image exceeds " + human_bytes(k_max_scaled_file_bytes),
                "Make a smaller copy with a command");
  }
  const auto header = image_header_of(*bytes);
  auto scaled = header ? scale_image(*bytes, *header, request.max_side, wire::k_max_body_to_host - k_image_reserve)
                       : fail(ErrorCode::bad_image, "Image has no readable header");
  if (!scaled) {
    return fail(scaled.error());
  }
  wire::FileImageAnswer answer{describe(*file), std::move(scaled->type), revision_of(*bytes),
                               scaled->width,   scaled->height,          std::move(scaled->bytes)};
  answer.size = bytes->size();
  changer.note_seen(request.owner, file->path, {answer.revision}, std::nullopt);
  return answer;
}

}  // namespace dockbridge::agent
