#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/moment.hpp"
#include "error/error.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

// What is known of processes, on disk: a journal of JSON objects, one a line, each with the id of its process. A line
// is appended when there is news, and adds to or replaces what the lines before it say. It has a version, so that
// servers of different versions can read each other's. The processes of a session share a journal because making a file
// can cost more than all the rest of a short command: ext4 looks at every file that was deleted lately.

inline constexpr int k_record_version = 1;
inline constexpr std::size_t k_max_journal_bytes = 4 * 1024 * 1024;
inline constexpr std::size_t k_command_preview_bytes = 1024;

/// A process's first line: what was asked for.
struct Meta {
  std::string command;  ///< cut to k_command_preview_bytes on a character border
  std::string cwd;
  std::string owner;
  std::string rationale;
  Moment started;
  std::string call{};  ///< the digest of the call, if that had an idempotency key; the id then ends with the key's
  std::uint64_t number = 0;  ///< among the owner's processes, from `ProcessNumbers`; 0: none
};

/// The second: the command runs.
struct Kept {
  std::int64_t pid = 0;
  std::string keeper;        ///< the name of its keeper's socket
  std::uint8_t control = 1;  ///< the version of its keeper's protocol
};

/// What a process was given under an idempotency key, counted in units: bytes, the end of the input, keys, signals.
struct TakenInput {
  std::string key;  ///< digests, as in Meta
  std::string call;
  std::uint64_t units = 0;
  std::uint64_t seen_out = 0;  ///< how much output the sender knew of when it began
  std::uint64_t seen_err = 0;
};

/// The third when the command has ended, and once more when nothing of it is left.
struct Status {
  wire::EndKind end = wire::EndKind::none;
  int end_code = 0;
  wire::Cause cause = wire::Cause::none;
  Moment ended;
  bool closed = false;  ///< nothing the command started is left
  wire::Usage used{};
  std::vector<TakenInput> taken{};  ///< the latest
};

struct Record {
  Meta meta;
  std::optional<Kept> kept;
  std::optional<Status> status;
};

// The files of a process in the state directory, beside the one named by its id.
inline std::string out_name(const std::string& process) {
  return process + ".out";
}
inline std::string err_name(const std::string& process) {
  return process + ".err";
}
inline std::string screen_name(const std::string& process) {
  return process + ".screen";
}
inline std::string script_name(const std::string& process) {
  return process + ".script";
}

Result<void> append(int journal, const std::string& process, const Meta& meta);
Result<void> append(int journal, const std::string& process, const Kept& kept);
Result<void> append(int journal, const std::string& process, const Status& status);

/// What a journal says of one process.
Result<Record> find_record(std::string_view journal, const std::string& process);
/// What it says of each, in no order.
using RecordVisitor = std::function<void(const std::string& process, const Result<Record>& record)>;
void visit_records(std::string_view journal, const RecordVisitor& visitor);

/// The longest prefix of `text` of at most `max` bytes that does not cut a UTF-8 character.
std::string utf8_prefix(std::string_view text, std::size_t max);

}  // namespace dockbridge::agent
