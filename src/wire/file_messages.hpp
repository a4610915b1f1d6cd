#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "wire/codec.hpp"
#include "wire/fields.hpp"

namespace dockbridge::wire {

// Common parts of the messages about files (docs/agent-protocol.md). A request names the type of its answer: `Answer`.
// The host does not trust answers, so names, sizes and counts are checked, and text that is shown to people is made
// printable.

inline constexpr std::uint64_t k_max_file_bytes = INT64_MAX;
/// Largest `st_mode`: the type of a file and its permissions.
inline constexpr std::uint64_t k_max_mode = 0777777;

enum class FileKind : std::uint8_t { text, image, binary };
template <>
inline constexpr std::array<std::string_view, 3> k_names<FileKind> = {"text", "image", "binary"};

/// Properties that the kernel reports for a file. A message that must have some of them requires these.
struct FileFacts {
  std::string path;  ///< path without symbolic links
  std::uint64_t size = 0;
  unsigned mode = 0;
  std::int64_t modified_at_ms = 0;

  void visit(Codec& codec);
};

/// Properties of a file that depend on its bytes.
struct ContentFacts {
  std::string revision;  ///< names the content; empty if the file is too large to have one
  FileKind kind = FileKind::text;
  std::string type;  ///< MIME type of an image; description of a binary file for people

  // Displayed size of an image; 0 if unknown.
  std::uint64_t width = 0;
  std::uint64_t height = 0;

  void visit(Codec& codec);
};

/// A revision, or an empty text.
const std::string& revision_from(const Field& field);
/// A plausible name of an encoding, or an empty text. The host shows names that it does not know.
const std::string& encoding_name_from(const Field& field);
/// Sentences for people: the first few, each as one printable line of limited length.
std::vector<std::string> notes_from(const Field& field);

/// Every request about files may have a root: the directory that no path leads out of. Empty means no limit.
void set_root(nlohmann::json& head, const std::string& root);
std::string root_from(const Field& head);

}  // namespace dockbridge::wire
