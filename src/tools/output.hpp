#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sandbox/sandbox.hpp"
#include "util/error.hpp"

namespace dockbridge::tools {

inline constexpr std::int64_t k_least_max_output = 100;
inline constexpr std::int64_t k_default_max_output = 30'000;
inline constexpr std::int64_t k_largest_max_output = 400'000;

/// A position in both streams of a process, as clients hand it back: "<stdout bytes>:<stderr bytes>".
struct Cursor {
  std::uint64_t out = 0;
  std::uint64_t err = 0;

  [[nodiscard]] std::string text() const;
  static std::optional<Cursor> parse(const std::string& text);
};

struct OutputRequest {
  std::size_t max_bytes = k_default_max_output;  ///< for both streams together
  bool raw = false;                              ///< keep escape sequences, carriage returns and repeated lines
  std::optional<Cursor> since;                   ///< from there on; none: head and tail of everything
  bool latest = false;                           ///< what does not fit is left out before it, not after it
  std::optional<std::size_t> tail_lines;         ///< only the last lines
};

/// One stream, ready to be shown: valid UTF-8, cut to size, with a line in it that says what was left out.
struct ShownStream {
  std::string text;
  std::uint64_t total = 0;     ///< bytes the process wrote
  std::uint64_t left_out = 0;  ///< of those asked for, not in `text`
  std::uint64_t not_kept = 0;  ///< of those left out, no longer stored
  std::uint64_t next = 0;      ///< offset after the last byte that was shown
  std::size_t replaced = 0;    ///< bytes that were not UTF-8
};

struct ShownOutput {
  ShownStream out;
  ShownStream err;
  [[nodiscard]] Cursor cursor() const { return {out.next, err.next}; }
};

/// Gets what `request` asks for, from the snapshot if that holds everything, else from the spool.
Result<ShownOutput> collect_output(sandbox::Sandbox& sandbox, const sandbox::Snapshot& snapshot,
                                   const OutputRequest& request, const sandbox::CallLimit& limit);

}  // namespace dockbridge::tools
