#include "wire/file_messages.hpp"

#include <algorithm>
#include <array>

#include "util/text.hpp"
#include "wire/file_names.hpp"
#include "wire/text_format.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

constexpr std::size_t k_max_notes = 20;
constexpr std::size_t k_max_note_bytes = 1000;
constexpr std::size_t k_max_type_bytes = 200;
constexpr std::size_t k_max_encoding_bytes = 20;
constexpr std::array<std::string_view, 3> k_kind_names = {"text", "image", "binary"};

std::optional<FileKind> kind_from(std::string_view name) {
  return value_named<FileKind>(k_kind_names, name);
}

bool is_encoding(std::string_view name) {
  return name.size() <= k_max_encoding_bytes && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

}  // namespace

json to_json(const FileFacts& facts) {
  return {{"path", facts.path}, {"size", facts.size}, {"mode", facts.mode}, {"modifiedAtMs", facts.modified_at_ms}};
}

FileFacts file_facts_from(const Field& head, std::initializer_list<const char*> required) {
  for (const char* key : required) {
    (void)head.at(key);
  }
  FileFacts facts;
  if (const auto path = head.find("path")) {
    facts.path = path->text();
  }
  if (const auto size = head.find("size")) {
    facts.size = size->number(k_max_file_bytes);
  }
  if (const auto mode = head.find("mode")) {
    facts.mode = static_cast<unsigned>(mode->number(k_max_mode));
  }
  if (const auto modified = head.find("modifiedAtMs")) {
    facts.modified_at_ms = modified->signed_number();
  }
  return facts;
}

json to_json(const ContentFacts& facts) {
  json head = {{"revision", facts.revision}, {"kind", k_kind_names.at(static_cast<std::size_t>(facts.kind))}};
  if (facts.kind != FileKind::text) {
    head["type"] = facts.type;
  }
  if (facts.width > 0 || facts.height > 0) {
    head["width"] = facts.width;
    head["height"] = facts.height;
  }
  return head;
}

ContentFacts content_facts_from(const Field& head) {
  ContentFacts facts;
  if (const auto revision = head.find("revision")) {
    facts.revision = revision_from(*revision);
  }
  facts.kind = head.at("kind").word(kind_from);
  if (facts.kind == FileKind::text) {
    return facts;
  }
  const Field type = head.at("type");
  facts.type = printable_line(type.text(), k_max_type_bytes);
  if (facts.kind == FileKind::image) {
    if (!is_image_type(type.text())) {
      type.fail_here();
    }
    if (const auto width = head.find("width")) {
      facts.width = width->number(k_max_image_side);
      facts.height = head.at("height").number(k_max_image_side);
    }
  }
  return facts;
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

json list_from(std::string_view text) {
  auto list = parse_bounded(text, k_max_list_depth);
  if (!list) {
    throw BadField("body");
  }
  return std::move(*list);
}

void set_root(json& head, const std::string& root) {
  if (!root.empty()) {
    head["root"] = root;
  }
}

std::string root_from(const Field& head) {
  const auto root = head.find("root");
  return root ? root->text() : "";
}

}  // namespace dockbridge::wire
