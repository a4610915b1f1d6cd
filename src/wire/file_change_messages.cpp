#include "wire/file_change_messages.hpp"

#include "wire/file_names.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

/// The field is an array of `[old bytes, new bytes, all]`. The texts are parts of the body.
void write_edits(Codec& codec, const std::vector<TextEdit>& edits) {
  json sizes = json::array();
  for (const TextEdit& edit : edits) {
    sizes.push_back({edit.old_text.size(), edit.new_text.size(), edit.replace_all});
    codec.append(edit.old_text);
    codec.append(edit.new_text);
  }
  codec.write("edits", std::move(sizes));
}

std::vector<TextEdit> read_edits(Codec& codec, const Field& sizes, std::size_t max) {
  std::vector<TextEdit> edits;
  for (const Field& size : sizes.elements(max)) {
    const auto parts = size.elements();
    if (parts.size() < 3) {
      size.fail_here();
    }
    TextEdit& edit = edits.emplace_back();
    edit.old_text = codec.take_part(parts[0]);
    edit.new_text = codec.take_part(parts[1]);
    edit.replace_all = parts[2].flag();
  }
  return edits;
}

void visit_edits(Codec& codec, std::vector<TextEdit>& edits, std::size_t max) {
  if (codec.is_reading()) {
    edits = read_edits(codec, codec.head().at("edits"), max);
  } else {
    write_edits(codec, edits);
  }
}

/// All but the changes of others.
void visit_change(Codec& codec, ChangedFile& file) {
  codec("path", file.path);
  codec("revision", file.revision, revision_from);
  codec("before", file.before, revision_from);
  codec("change", file.change, [](const Field& field) { return field.name(is_change_id); });
  codec("size", file.size, AtMost{k_max_file_bytes});
  codec("encoding", file.encoding, encoding_name_from);
  codec("replacements", file.replacements);
  codec("added", file.added);
  codec("removed", file.removed);
  codec("stale", file.was_stale);
  codec("notes", file.notes, notes_from);
  codec.part("diffBytes", file.diff);
}

}  // namespace

void ChangeRequest::visit(Codec& codec) {
  codec("path", path);
  codec("owner", owner);
  codec.optional("expected", expected_revision);
  codec.optional("matchIsEnough", match_is_enough);
}

void NewContent::visit(Codec& codec) {
  codec("text", is_text);
  codec.optional("encoding", encoding, [](const Field& field) {
    return field.text().empty() ? std::nullopt : std::optional(field.word(value_named<Encoding>));
  });
  codec.optional("mode", mode, [](const Field& field) { return field.number(k_max_mode) & k_permissions; });
}

void ChangedFile::visit(Codec& codec) {
  visit_change(codec, *this);
  codec.body(stale_changes);
}

void ChangedFiles::visit(Codec& codec) {
  codec.list("changes", files, k_max_set_files, visit_change);
}

void FileWriteRequest::visit(Codec& codec) {
  change.visit(codec);
  content.visit(codec);
  codec.optional("staging", staging);
  if (codec.is_reading() || !staging) {  // the bytes of a staged content were sent before
    codec.body(content.bytes);
  }
}

void FileEditRequest::visit(Codec& codec) {
  change.visit(codec);
  visit_edits(codec, edits, k_max_edits);
}

void FileEditSetRequest::visit(Codec& codec) {
  codec("owner", owner);
  codec.lenient("matchIsEnough", match_is_enough);
  codec("preview", preview);
  codec("replacement", is_replacement);
  std::size_t count = 0;
  codec.list("files", files, SIZE_MAX, [&count](Codec& entry, FileEdits& file) {
    entry("path", file.path);
    entry.optional("expected", file.expected_revision);
    visit_edits(entry, file.edits, k_max_edits - count);
    count += file.edits.size();
  });
}

void FileUndoRequest::visit(Codec& codec) {
  change.visit(codec);
  codec.optional("change", change_id);
}

void FileStageAnswer::visit(Codec& codec) {
  codec.write_only("staging", true);  // the session keeps the worker for the upload
}

void FileStageRequest::visit(Codec& codec) {
  codec("staging", staging);
  codec("path", path);
  codec("first", first);
  codec.body(bytes);
}

void FileAbandonAnswer::visit(Codec& /*codec*/) {}

void FileAbandonRequest::visit(Codec& codec) {
  codec.optional("staging", staging);
}

}  // namespace dockbridge::wire
