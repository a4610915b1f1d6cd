#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/stream_parts.hpp"

namespace dockbridge::tools {

inline constexpr std::int64_t k_min_max_output = 100;
/// With the remarks around the output, a reply has at most 10,000 bytes.
inline constexpr std::int64_t k_default_max_output = 9'500;
inline constexpr std::int64_t k_max_max_output = 400'000;
inline constexpr std::size_t k_default_max_lines = 1'500;
/// Longer output has to be searched anyway, so an excerpt suffices.
inline constexpr std::size_t k_default_excerpt = 2'000;

/// A position in both streams of a process, as clients send it back: "<stdout bytes>:<stderr bytes>", or only the
/// first.
struct Cursor {
  std::uint64_t out = 0;
  std::uint64_t err = 0;

  [[nodiscard]] std::string text() const;
  static std::optional<Cursor> parse(const std::string& text);
};

struct OutputRequest {
  std::size_t max_bytes = k_default_max_output;  ///< of the text of both streams, without remarks
  std::size_t max_lines = k_default_max_lines;   ///< of both streams together; 0 means no limit
  std::size_t excerpt = k_default_excerpt;       ///< bytes shown of output that exceeds one of the two
  bool raw = false;                              ///< keep escape sequences, carriage returns and repeated lines
  std::optional<Cursor> since;                   ///< first byte to show; nullopt: head and tail of everything
  Cursor shown{};                                ///< without `since`: output before it is not requested
  bool latest = false;                           ///< if the output does not fit, show its end
  std::optional<std::size_t> tail_lines;         ///< only the last lines
};

/// Bytes of a stream that were requested and are not shown.
struct Gap {
  std::uint64_t from = 0;        ///< offset in the stream
  std::uint64_t to = 0;          ///< offset after the last byte
  std::uint64_t not_stored = 0;  ///< bytes of them that cannot be read any more
  std::size_t at = 0;            ///< position in `ShownStream::content`, in bytes
};

/// One stream, ready to be shown: cut to size, with remarks that say what was left out.
struct ShownStream {
  std::vector<StreamPart> parts;
  std::string text{};                   ///< parts and remarks, for people and models; valid UTF-8
  std::string content{};                ///< the same without remarks, for programs
  std::vector<Gap> gaps{};              ///< in the order of the stream; their sizes add up to `left_out`
  std::uint64_t from = 0;               ///< offset of the first byte that was requested
  std::uint64_t total = 0;              ///< bytes that the process wrote
  std::optional<std::uint64_t> rest{};  ///< offset of what did not fit; nullopt if everything requested is shown
  std::uint64_t left_out = 0;           ///< bytes that were requested and are not in `text`
  std::uint64_t not_kept = 0;           ///< bytes left out before the last shown one that are no longer stored
  std::uint64_t next = 0;               ///< offset after the last byte that was shown
  std::size_t replaced = 0;             ///< bytes that were not UTF-8
};

struct ShownOutput {
  ShownStream out;
  ShownStream err;
  std::string text{};  ///< both in the order of writing, with marks where the stream changes
  [[nodiscard]] Cursor cursor() const { return {out.next, err.next}; }
  /// Bytes of the process that are shown.
  [[nodiscard]] std::size_t bytes() const;
  /// Where to read on; nullopt if everything requested is shown.
  [[nodiscard]] std::optional<Cursor> rest() const {
    return out.rest || err.rest ? std::optional(Cursor{out.rest.value_or(out.next), err.rest.value_or(err.next)})
                                : std::nullopt;
  }
};

/// Rendering can lengthen output: U+FFFD has three bytes, and a terminal fills lines with spaces. If `text`, the
/// rendered form of `bytes` bytes, exceeds what `request` allows, returns a request for fewer bytes; nullopt if it
/// fits.
std::optional<OutputRequest> request_less(const OutputRequest& request, const std::string& text, std::size_t bytes);

/// Collects the requested output, from the snapshot if that holds everything, else from the spool.
Result<ShownOutput> collect_output(sandbox::Sandbox& sandbox, const sandbox::Snapshot& snapshot,
                                   const OutputRequest& request, const sandbox::CallLimit& limit);

}  // namespace dockbridge::tools
