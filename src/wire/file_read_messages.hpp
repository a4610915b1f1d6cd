#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "wire/codec.hpp"
#include "wire/file_messages.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"
#include "wire/text_format.hpp"

namespace dockbridge::wire {

// Requests that read a file: a page of its text, a part of its bytes, a scaled image, or a copy of all its bytes.

/// Longest text of a page.
inline constexpr std::size_t k_max_page_bytes = k_max_body_to_host / 2;

/// Some lines of a text file, or the properties of another file.
struct FileReadAnswer : FileFacts, ContentFacts {
  // Only of a text file.
  std::string text{};  ///< body; every line ends with "\n"
  std::size_t lines = 0;
  std::int64_t first_line = 1;  ///< counted from 1; negative: from the end
  std::optional<std::uint64_t> total_lines{};
  bool more = false;
  std::uint64_t cut_lines = 0;
  std::string encoding{};
  LineEnds line_ends = LineEnds::none;
  bool final_newline = true;
  std::string previous_revision{};  ///< revision of the owner's previous page, if it differs

  void visit(Codec& codec);
};

struct FileReadRequest {
  static constexpr Operation k_operation = Operation::file_read;
  using Answer = FileReadAnswer;

  std::string path;
  std::string owner;        ///< the file counts as read by this owner
  std::int64_t offset = 0;  ///< lines to skip; negative: start this many lines before the end
  std::size_t limit = 2000;
  std::uint64_t column = 0;  ///< characters of the first line to skip; that line is then cut by `max_bytes` only
  std::size_t max_line_characters = 2000;
  std::size_t max_bytes = 96ULL * 1024;  ///< of the lines with their numbers; the first line is always sent

  void visit(Codec& codec);
};

struct FileBytesAnswer : FileFacts {
  std::string bytes;  ///< body

  void visit(Codec& codec);
};

/// Reads a part of the file that has the path at that moment.
struct FileBytesRequest {
  static constexpr Operation k_operation = Operation::file_bytes;
  using Answer = FileBytesAnswer;

  std::string path;
  std::uint64_t offset = 0;
  std::size_t max = 0;

  void visit(Codec& codec);
};

/// An image that was scaled down.
struct FileImageAnswer : FileFacts {
  std::string type;      ///< MIME type
  std::string revision;  ///< of the file
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::string bytes;  ///< body

  void visit(Codec& codec);
};

struct FileImageRequest {
  static constexpr Operation k_operation = Operation::file_image;
  using Answer = FileImageAnswer;

  std::string path;
  std::string owner;           ///< the file counts as read by this owner
  std::uint32_t max_side = 0;  ///< pixels on the longer side

  void visit(Codec& codec);
};

struct FileOpenAnswer : FileFacts {
  std::optional<ContentFacts> content{};  ///< if the request has an owner

  void visit(Codec& codec);
};

/// Opens a file, to copy it with `file.next`.
struct FileOpenRequest {
  static constexpr Operation k_operation = Operation::file_open;
  using Answer = FileOpenAnswer;

  std::string path;
  std::string staging;                 ///< token of the copy
  std::optional<std::string> owner{};  ///< the file counts as read by this owner

  void visit(Codec& codec);
};

/// The next piece of a copy.
struct FileNextAnswer {
  std::uint64_t offset = 0;   ///< the bytes between the previous piece and this one are a hole
  std::uint64_t checked = 0;  ///< number of bytes that the check has compared
  std::string revision;       ///< of the whole content, with the last piece; else empty
  std::string bytes;          ///< body; may be empty

  void visit(Codec& codec);
};

struct FileNextRequest {
  static constexpr Operation k_operation = Operation::file_next;
  using Answer = FileNextAnswer;

  std::string staging;
  std::size_t max = 0;

  void visit(Codec& codec);
};

}  // namespace dockbridge::wire
