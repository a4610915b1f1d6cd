#include "wire/file_messages.hpp"

#include <algorithm>

#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::wire {

namespace {

constexpr std::size_t k_max_notes = 20;
constexpr std::size_t k_max_note_bytes = 1000;
constexpr std::size_t k_max_type_bytes = 200;
constexpr std::size_t k_max_encoding_bytes = 20;
constexpr const char* k_root = "root";

bool is_encoding(std::string_view name) {
  return name.size() <= k_max_encoding_bytes && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

}  // namespace

void FileFacts::visit(Codec& codec) {
  codec.lenient("path", path);
  codec.lenient("size", size, AtMost{k_max_file_bytes});
  codec.lenient("mode", mode, AtMost{k_max_mode});
  codec.lenient("modifiedAtMs", modified_at_ms);
}

void ContentFacts::visit(Codec& codec) {
  codec.lenient("revision", revision, revision_from);
  codec("kind", kind);
  if (kind == FileKind::text) {
    return;
  }
  codec("type", type, [this](const Field& field) {
    if (kind == FileKind::image && !is_image_type(field.text())) {
      field.fail_here();
    }
    return printable_line(field.text(), k_max_type_bytes);
  });
  if (kind == FileKind::image) {
    codec.optional("width", width, AtMost{k_max_image_side});
    if (width > 0) {
      codec("height", height, AtMost{k_max_image_side});
    }
  }
}

const std::string& revision_from(const Field& field) {
  return field.name(is_revision);
}

const std::string& encoding_name_from(const Field& field) {
  return field.name(is_encoding);
}

std::vector<std::string> notes_from(const Field& field) {
  std::vector<std::string> notes;
  for (const Field& note : field.elements()) {
    const std::string& text = note.text();
    if (notes.size() < k_max_notes) {
      notes.push_back(printable_line(text, k_max_note_bytes));
    }
  }
  return notes;
}

void set_root(nlohmann::json& head, const std::string& root) {
  if (!root.empty()) {
    head[k_root] = root;
  }
}

std::string root_from(const Field& head) {
  const auto root = head.find(k_root);
  return root ? root->text() : "";
}

}  // namespace dockbridge::wire
