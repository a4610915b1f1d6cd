#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error/error.hpp"
#include "wire/fields.hpp"
#include "wire/frame.hpp"

namespace dockbridge::wire {

// Common parts of the messages about files (docs/agent-protocol.md). Every message is a struct. A request has
// - `k_operation`, and `Answer`: the type of its answer;
// - `to_json()`: the head, with `op`; or `to_frame()` if the body has several parts;
// - `from(head, body)`: throws BadField if the message is malformed. Views of the body refer to it.
// An answer has `to_frame()` and `from(head, body)` likewise. The host does not trust answers, so names, sizes and
// counts are checked, and text that is shown to people is made printable.

inline constexpr std::uint64_t k_max_file_bytes = INT64_MAX;
inline constexpr std::uint64_t k_max_image_side = std::uint64_t{1} << 24U;
/// Largest `st_mode`: the type of a file and its permissions.
inline constexpr std::uint64_t k_max_mode = 0777777;
inline constexpr unsigned k_permissions = 07777;
/// Levels of JSON in a body.
inline constexpr int k_max_list_depth = 8;

enum class FileKind : std::uint8_t { text, image, binary };

/// Properties that the kernel reports for a file.
struct FileFacts {
  std::string path;  ///< the real one, without symbolic links
  std::uint64_t size = 0;
  unsigned mode = 0;
  std::int64_t modified_at_ms = 0;
};

/// Properties of a file that depend on its bytes.
struct ContentFacts {
  std::string revision;  ///< names the content; empty if the file is too large to have one
  FileKind kind = FileKind::text;
  std::string type;  ///< MIME type of an image; description of a binary file for people

  // Size of an image as it is to be shown; 0 if unknown.
  std::uint64_t width = 0;
  std::uint64_t height = 0;
};

nlohmann::json to_json(const FileFacts& facts);
/// Facts that are absent and not `required` keep their defaults.
FileFacts file_facts_from(const Field& head, std::initializer_list<const char*> required);
nlohmann::json to_json(const ContentFacts& facts);
ContentFacts content_facts_from(const Field& head);

/// A revision, or an empty text.
const std::string& revision_from(const Field& field);
/// A plausible name of an encoding, or an empty text. The host shows names that it does not know.
const std::string& encoding_name_from(const Field& field);
/// Sentences for people: the first few, each as one printable line of limited length.
std::vector<std::string> notes_from(const Field& field);
/// A JSON object in a body.
nlohmann::json list_from(std::string_view text);

/// Every request about files may have a root: the directory that no path leads out of. Empty means no limit.
void set_root(nlohmann::json& head, const std::string& root);
std::string root_from(const Field& head);

/// The message in a frame. Error `code` with the path of the failing field if it is malformed.
template <typename Message, typename Body>
Result<Message> message_from(const nlohmann::json& head, Body&& body, ErrorCode code) {
  return read_fields(head, code, [&](const Field& field) { return Message::from(field, std::forward<Body>(body)); });
}

}  // namespace dockbridge::wire
