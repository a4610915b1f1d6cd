#include "wire/file_read_messages.hpp"

#include <array>
#include <utility>

namespace dockbridge::wire {

namespace {

using nlohmann::json;

/// Types of a scaled image.
constexpr std::array<std::string_view, 2> k_scaled_types = {"image/png", "image/jpeg"};

bool is_scaled_type(std::string_view type) {
  return type == k_scaled_types[0] || type == k_scaled_types[1];
}

}  // namespace

json FileReadRequest::to_json() const {
  return {{"op", name_of(k_operation)},
          {"path", path},
          {"owner", owner},
          {"offset", offset},
          {"limit", limit},
          {"column", column},
          {"maxLine", max_line_characters},
          {"maxBytes", max_bytes}};
}

FileReadRequest FileReadRequest::from(const Field& head, std::string_view /*body*/) {
  FileReadRequest request;
  request.path = head.at("path").text();
  request.owner = head.at("owner").text();
  request.offset = head.at("offset").signed_number();
  request.limit = head.at("limit").number();
  request.column = head.at("column").number();
  request.max_line_characters = head.at("maxLine").number();
  request.max_bytes = head.at("maxBytes").number();
  return request;
}

Frame FileReadAnswer::to_frame() && {
  json head = wire::to_json(static_cast<const FileFacts&>(*this));
  head.update(wire::to_json(static_cast<const ContentFacts&>(*this)));
  if (!previous_revision.empty()) {
    head["previousRevision"] = previous_revision;
  }
  if (kind != FileKind::text) {
    return {std::move(head), ""};
  }
  head["firstLine"] = first_line;
  head["lines"] = lines;
  head["more"] = more;
  head["cutLines"] = cut_lines;
  head["encoding"] = encoding;
  head["lineEnds"] = name_of(line_ends);
  head["finalNewline"] = final_newline;
  if (total_lines) {
    head["totalLines"] = *total_lines;
  }
  return {std::move(head), std::move(text)};
}

FileReadAnswer FileReadAnswer::from(const Field& head, std::string body) {
  FileReadAnswer file{file_facts_from(head, {"path", "size", "modifiedAtMs", "revision"}), content_facts_from(head)};
  if (const auto previous = head.find("previousRevision")) {
    file.previous_revision = revision_from(*previous);
  }
  if (file.kind != FileKind::text) {
    return file;
  }
  file.text = std::move(body);
  file.lines = head.at("lines").number(file.text.size());
  file.first_line = head.at("firstLine").signed_number();
  file.more = head.at("more").flag();
  file.cut_lines = head.at("cutLines").number();
  file.encoding = encoding_name_from(head.at("encoding"));
  file.line_ends = head.at("lineEnds").word(line_ends_from);
  file.final_newline = head.at("finalNewline").flag();
  if (const auto total = head.find("totalLines")) {
    file.total_lines = total->number();
  }
  return file;
}

json FileBytesRequest::to_json() const {
  return {{"op", name_of(k_operation)}, {"path", path}, {"offset", offset}, {"max", max}};
}

FileBytesRequest FileBytesRequest::from(const Field& head, std::string_view /*body*/) {
  return {head.at("path").text(), head.at("offset").number(k_max_file_bytes), head.at("max").number()};
}

Frame FileBytesAnswer::to_frame() && {
  return {wire::to_json(static_cast<const FileFacts&>(*this)), std::move(bytes)};
}

FileBytesAnswer FileBytesAnswer::from(const Field& head, std::string body) {
  return {file_facts_from(head, {"path", "size", "mode", "modifiedAtMs"}), std::move(body)};
}

json FileImageRequest::to_json() const {
  return {{"op", name_of(k_operation)}, {"path", path}, {"owner", owner}, {"maxSide", max_side}};
}

FileImageRequest FileImageRequest::from(const Field& head, std::string_view /*body*/) {
  return {head.at("path").text(), head.at("owner").text(),
          static_cast<std::uint32_t>(head.at("maxSide").number(UINT32_MAX))};
}

Frame FileImageAnswer::to_frame() && {
  json head = wire::to_json(static_cast<const FileFacts&>(*this));
  head["revision"] = revision;
  head["type"] = type;
  head["width"] = width;
  head["height"] = height;
  return {std::move(head), std::move(bytes)};
}

FileImageAnswer FileImageAnswer::from(const Field& head, std::string body) {
  const Field type = head.at("type");
  if (!is_scaled_type(type.text())) {
    type.fail_here();
  }
  return {file_facts_from(head, {}),
          type.text(),
          revision_from(head.at("revision")),
          head.at("width").number(k_max_image_side),
          head.at("height").number(k_max_image_side),
          std::move(body)};
}

json FileOpenRequest::to_json() const {
  json head = {{"op", name_of(k_operation)}, {"path", path}, {"staging", staging}};
  if (owner) {
    head["owner"] = *owner;
  }
  return head;
}

FileOpenRequest FileOpenRequest::from(const Field& head, std::string_view /*body*/) {
  FileOpenRequest request{head.at("path").text(), head.at("staging").text()};
  if (const auto owner = head.find("owner")) {
    request.owner = owner->text();
  }
  return request;
}

Frame FileOpenAnswer::to_frame() const {
  json head = wire::to_json(static_cast<const FileFacts&>(*this));
  if (content) {
    head.update(wire::to_json(*content));
  }
  head["staging"] = true;  // the session keeps this worker for the copy
  return {std::move(head), ""};
}

FileOpenAnswer FileOpenAnswer::from(const Field& head, std::string_view /*body*/) {
  FileOpenAnswer answer{file_facts_from(head, {"size", "mode"})};
  if (head.has("kind")) {
    answer.content = content_facts_from(head);
  }
  return answer;
}

json FileNextRequest::to_json() const {
  return {{"op", name_of(k_operation)}, {"staging", staging}, {"max", max}};
}

FileNextRequest FileNextRequest::from(const Field& head, std::string_view /*body*/) {
  return {head.at("staging").text(), head.at("max").number()};
}

Frame FileNextAnswer::to_frame() && {
  json head = {{"offset", offset}, {"checked", checked}};
  if (revision.empty()) {
    head["staging"] = true;
  } else {
    head["revision"] = revision;
  }
  return {std::move(head), std::move(bytes)};
}

FileNextAnswer FileNextAnswer::from(const Field& head, std::string body) {
  FileNextAnswer answer{head.at("offset").number(k_max_file_bytes), head.at("checked").number(k_max_file_bytes), "",
                        std::move(body)};
  if (const auto revision = head.find("revision")) {
    answer.revision = revision_from(*revision);
  }
  return answer;
}

}  // namespace dockbridge::wire
