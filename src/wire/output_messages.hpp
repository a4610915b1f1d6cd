#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/codec.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"
#include "wire/process_state.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::wire {

// Requests for the output of processes and for their list, and the answers (docs/agent-protocol.md).

/// Largest number of lines around a match.
inline constexpr std::size_t k_max_context = 50;
/// Size of the text of a screen or a list, so that it fits into one body.
inline constexpr std::size_t k_max_text_body = k_max_body_to_host - 4096;
/// More states than an agent can send in one answer.
inline constexpr std::size_t k_max_listed = 10'000;

enum class Stream : std::uint8_t {
  out,
  err,
  side,  ///< pieces of the side channel, see wire/side_channel.hpp
};
template <>
inline constexpr std::array<std::string_view, 3> k_names<Stream> = {"out", "err", "side"};

struct ReadRequest {
  static constexpr Operation k_operation = Operation::read;
  std::string process;
  Stream stream = Stream::out;
  std::uint64_t offset = 0;
  std::uint64_t max = 0;  ///< bytes; the agent sends at most k_max_read_bytes

  void visit(Codec& codec);
};

/// Consecutive bytes of a stream.
struct ReadAnswer {
  std::uint64_t offset = 0;
  std::string bytes;  ///< body
  StreamState stream;

  void visit(Codec& codec);
  /// Also checks that the answer fits the request.
  static ReadAnswer from_json(const Field& head, std::string body, const ReadRequest& request);
};

/// A search in the stored output of a process.
struct GrepQuery {
  std::string pattern;  ///< in RE2 syntax
  bool ignore_case = false;
  std::size_t context = 0;
  std::size_t most = 100;  ///< matching lines that are shown of each stream
};

struct GrepRequest {
  static constexpr Operation k_operation = Operation::grep;
  std::string process;
  GrepQuery query;

  /// A reader reduces `context` to k_max_context.
  void visit(Codec& codec);
};

/// Lines of a process's stored output as grep shows them. The body is `out` and `err`.
struct GrepAnswer {
  std::string out;
  std::string err;
  Offsets matches{};
  Offsets shown{};

  void visit(Codec& codec);
};

struct ScreenRequest {
  static constexpr Operation k_operation = Operation::screen;
  std::string process;

  void visit(Codec& codec);
};

/// Contents of a process's terminal screen.
struct ScreenAnswer : ScreenFacts {
  std::string text;  ///< body

  void visit(Codec& codec);
};

struct ListRequest {
  static constexpr Operation k_operation = Operation::list;
  std::string owner;
  std::uint64_t most = k_max_listed;
  std::uint64_t most_finished = k_max_listed;

  void visit(Codec& codec);
};

struct ListAnswer {
  std::vector<ProcessState> processes{};  ///< the body, made by ListBody: running, then finished; each latest first
  std::uint64_t left_out = 0;
  std::uint64_t unreadable = 0;  ///< processes whose records cannot be read

  void visit(Codec& codec);
};

/// Collects the body of a `ListAnswer` up to the size of one body. The states are written one at a time, because their
/// sizes decide how many fit.
class ListBody {
 public:
  /// False if there is no room for the state. Nothing is added then, and nothing later.
  bool add(const ProcessState& state);
  [[nodiscard]] std::size_t size() const { return m_count; }
  [[nodiscard]] std::string text() const { return m_text + "]}"; }

 private:
  std::string m_text = "{\"processes\":[";
  std::size_t m_count = 0;
  bool m_is_full = false;
};

}  // namespace dockbridge::wire
