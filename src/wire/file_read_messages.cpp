#include "wire/file_read_messages.hpp"

#include "wire/file_names.hpp"

namespace dockbridge::wire {

namespace {

const std::string& scaled_type_from(const Field& field) {
  if (field.text() != "image/png" && field.text() != "image/jpeg") {
    field.fail_here();
  }
  return field.text();
}

}  // namespace

void FileReadRequest::visit(Codec& codec) {
  codec("path", path);
  codec("owner", owner);
  codec("offset", offset);
  codec("limit", limit);
  codec("column", column);
  codec("maxLine", max_line_characters);
  codec("maxBytes", max_bytes);
}

void FileReadAnswer::visit(Codec& codec) {
  codec.require({"path", "size", "modifiedAtMs", "revision"});
  FileFacts::visit(codec);
  ContentFacts::visit(codec);
  codec.optional("previousRevision", previous_revision, revision_from);
  if (kind == FileKind::text) {
    codec.body(text);
    codec("firstLine", first_line);
    codec("lines", lines, AtMost{text.size()});
    codec("more", more);
    codec("cutLines", cut_lines);
    codec("encoding", encoding, encoding_name_from);
    codec("lineEnds", line_ends);
    codec("finalNewline", final_newline);
    codec.optional("totalLines", total_lines);
  }
}

void FileBytesRequest::visit(Codec& codec) {
  codec("path", path);
  codec("offset", offset, AtMost{k_max_file_bytes});
  codec("max", max);
}

void FileBytesAnswer::visit(Codec& codec) {
  codec.require({"path", "size", "mode", "modifiedAtMs"});
  FileFacts::visit(codec);
  codec.body(bytes);
}

void FileImageRequest::visit(Codec& codec) {
  codec("path", path);
  codec("owner", owner);
  codec("maxSide", max_side);
}

void FileImageAnswer::visit(Codec& codec) {
  FileFacts::visit(codec);
  codec("type", type, scaled_type_from);
  codec("revision", revision, revision_from);
  codec("width", width, AtMost{k_max_image_side});
  codec("height", height, AtMost{k_max_image_side});
  codec.body(bytes);
}

void FileOpenRequest::visit(Codec& codec) {
  codec("path", path);
  codec("staging", staging);
  codec.optional("owner", owner);
}

void FileOpenAnswer::visit(Codec& codec) {
  codec.require({"size", "mode"});
  FileFacts::visit(codec);
  codec.group("kind", content);
  codec.write_only("staging", true);  // the session keeps the worker for the copy
}

void FileNextRequest::visit(Codec& codec) {
  codec("staging", staging);
  codec("max", max);
}

void FileNextAnswer::visit(Codec& codec) {
  codec("offset", offset, AtMost{k_max_file_bytes});
  codec("checked", checked, AtMost{k_max_file_bytes});
  codec.optional("revision", revision, revision_from);
  if (revision.empty()) {
    codec.write_only("staging", true);
  }
  codec.body(bytes);
}

}  // namespace dockbridge::wire
