#pragma once

#include <cstddef>
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

// Records of processes on disk: a journal of JSON objects, one per line, each with the id of its process. A line is
// appended when something changes. Its fields are added to those of earlier lines, or replace them. The record has a
// version, so servers of different versions can read each other's records. The processes of a session share a journal,
// because creating a file can cost more than the rest of a short command: ext4 examines every recently deleted inode.

inline constexpr int k_record_version = 1;
inline constexpr std::size_t k_max_journal_bytes = 4 * 1024 * 1024;
inline constexpr std::size_t k_command_preview_bytes = 1024;

/// The first line of a process: the request.
struct Meta {
  std::string command;  ///< cut to k_command_preview_bytes at a character boundary
  std::string cwd;
  std::string owner;
  std::string rationale;
  Moment started;
  std::string call{};  ///< digest of a call with an idempotency key; the process id then ends with the key's digest
  std::uint64_t number = 0;                         ///< among the owner's processes, from `ProcessNumbers`; 0: none
  std::optional<wire::CodeSessionLabel> session{};  ///< nullopt if it is not a code session
};

/// The second line: the command runs.
struct Kept {
  std::int64_t pid = 0;
  std::string keeper;        ///< name of its keeper's socket
  std::uint8_t control = 1;  ///< version of its keeper's protocol
};

/// Idempotency keys that a process remembers, and that its record has.
inline constexpr std::size_t k_max_taken_keys = 16;

/// Input under an idempotency key, counted in units: bytes, the end of the input, keys, signals.
struct TakenInput {
  std::string key;  ///< digests, as in Meta
  std::string call;
  std::uint64_t units = 0;
  std::uint64_t seen_out = 0;  ///< output that the sender knew when it began
  std::uint64_t seen_err = 0;
};

/// The third line when the command has ended, and another one when its whole tree has ended.
struct Status {
  wire::EndKind end = wire::EndKind::none;
  int end_code = 0;
  wire::Cause cause = wire::Cause::none;
  Moment ended;
  bool closed = false;  ///< the whole tree has ended
  wire::Usage used{};
  std::vector<TakenInput> taken{};  ///< the latest
};

struct Record {
  Meta meta;
  std::optional<Kept> kept;
  std::optional<Status> status;
};

/// Prefix of the names of keepers' sockets in the state directory.
inline constexpr std::string_view k_keeper_prefix = "keeper_";

// Files of a process in the state directory, besides the one with its id as name.
inline std::string out_name(const std::string& process) {
  return process + ".out";
}
inline std::string err_name(const std::string& process) {
  return process + ".err";
}
inline std::string side_name(const std::string& process) {
  return process + ".side";
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

/// Reads the record of one process from a journal.
Result<Record> find_record(std::string_view journal, const std::string& process);
/// Reads the records of all processes, in no particular order.
using RecordVisitor = std::function<void(const std::string& process, const Result<Record>& record)>;
void visit_records(std::string_view journal, const RecordVisitor& visitor);

/// The longest prefix of `text` with at most `max` bytes that does not cut a UTF-8 character.
std::string utf8_prefix(std::string_view text, std::size_t max);

}  // namespace dockbridge::agent
