#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/fields.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"
#include "wire/process_state.hpp"
#include "wire/screen_facts.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::wire {

// Requests for the output of processes and for their list, and the answers (docs/agent-protocol.md).

/// Largest number of lines around a match.
inline constexpr std::size_t k_max_context = 50;
/// Size of the text of a screen or a list, so that it fits into one body.
inline constexpr std::size_t k_max_text_body = k_max_body_to_host - 4096;
/// More states than an agent can send in one answer.
inline constexpr std::size_t k_max_listed = 10'000;

enum class Stream : std::uint8_t { out, err };

struct ReadRequest {
  static constexpr Operation k_operation = Operation::read;
  std::string process;
  Stream stream = Stream::out;
  std::uint64_t offset = 0;
  std::uint64_t max = 0;  ///< bytes; the agent sends at most k_max_read_bytes

  static ReadRequest from_json(const Field& head);
};
nlohmann::json to_json(const ReadRequest& request);

/// Bytes of a stream in one piece. The body is `bytes`.
struct ReadAnswer {
  std::uint64_t offset = 0;
  std::string bytes;
  StreamState stream;

  static ReadAnswer from_json(const Field& head, std::string body, const ReadRequest& request);
};
nlohmann::json to_json(const ReadAnswer& answer);

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

  /// `context` is reduced to k_max_context.
  static GrepRequest from_json(const Field& head);
};
nlohmann::json to_json(const GrepRequest& request);

/// Lines of a process's stored output as grep shows them. The body is `out` and `err`.
struct GrepAnswer {
  std::string out;
  std::string err;
  Offsets matches{};
  Offsets shown{};

  static GrepAnswer from_json(const Field& head, std::string_view body);
};
nlohmann::json to_json(const GrepAnswer& answer);

struct ScreenRequest {
  static constexpr Operation k_operation = Operation::screen;
  std::string process;

  static ScreenRequest from_json(const Field& head);
};
nlohmann::json to_json(const ScreenRequest& request);

/// Contents of a process's terminal screen. The body is `text`.
struct ScreenAnswer : ScreenFacts {
  std::string text;

  static ScreenAnswer from_json(const Field& head, std::string body);
};
nlohmann::json to_json(const ScreenAnswer& answer);

struct ListRequest {
  static constexpr Operation k_operation = Operation::list;
  std::string owner;
  std::uint64_t most = k_max_listed;
  std::uint64_t most_finished = k_max_listed;

  static ListRequest from_json(const Field& head);
};
nlohmann::json to_json(const ListRequest& request);

struct ListAnswer {
  std::vector<ProcessState> processes{};  ///< those that run, then finished ones; each latest first
  std::uint64_t left_out = 0;
  std::uint64_t unreadable = 0;  ///< processes whose records cannot be read

  static ListAnswer from_json(const Field& head, std::string_view body);
};
nlohmann::json to_json(const ListAnswer& answer);

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
