#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "error/error.hpp"
#include "util/clock.hpp"
#include "wire/codec.hpp"
#include "wire/operation.hpp"

namespace dockbridge::wire {

// The greeting of a session, and requests about the connection and about watching a file (docs/agent-protocol.md).

/// An agent's description of itself.
struct Hello {
  std::string version;
  std::string machine;  ///< as in uname
  std::string shell;    ///< empty if the container has none
  std::string state_directory;
  std::string home;  ///< of the user that the agent runs as
  std::uint64_t uid = 0;
  std::int64_t pid = 0;

  void visit(Codec& codec);
};
/// The first head that a session sends.
nlohmann::json greeting_of(const Hello& hello);
/// The only head that a session sends if it cannot serve.
nlohmann::json fatal_greeting_of(const Error& error);
/// The error of a fatal greeting, `agent_version` if the agent uses another protocol, else `protocol_violation` with
/// the path of the bad field.
Result<Hello> hello_from_greeting(const nlohmann::json& head);

struct PingRequest {
  static constexpr Operation k_operation = Operation::ping;

  void visit(Codec& /*codec*/) {}
};

struct CancelRequest {
  static constexpr Operation k_operation = Operation::cancel;
  std::uint64_t request = 0;  ///< id of the request to drop

  void visit(Codec& codec);
};

/// Invites the session to a socket in a directory that host and container share.
struct LineRequest {
  static constexpr Operation k_operation = Operation::line;
  std::string path;  ///< in the container
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::string key;  ///< the session sends it first, to prove that it was invited

  void visit(Codec& codec);
};

struct WatchRequest {
  static constexpr Operation k_operation = Operation::file_watch;
  std::string path;
  std::int64_t modified_at_ms = 0;  ///< as the host knows it; 0: there was no file
  milliseconds timeout{0};
  std::string root{};  ///< the path must not lead out of it; empty: no limit

  void visit(Codec& codec);
};

struct WatchAnswer {
  bool changed = false;  ///< false: the timeout passed

  void visit(Codec& codec);
};

}  // namespace dockbridge::wire
