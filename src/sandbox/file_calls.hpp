#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/seen_revisions.hpp"
#include "util/clock.hpp"
#include "wire/codec.hpp"
#include "wire/file_change_messages.hpp"
#include "wire/file_messages.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"

namespace dockbridge::sandbox {

class AgentLink;

/// Time that the agent may take for an answer, with a disk that has to wake up and a busy machine.
inline constexpr milliseconds k_file_patience{60'000};

/// Length of the token of an upload or a copy.
inline constexpr std::size_t k_transfer_token_length = 16;

/// Sends requests about files and reads the answers. Any thread may call.
class FileCalls {
 public:
  /// `root`: the directory beneath which all paths must be; empty: no limit.
  FileCalls(AgentLink& link, std::string root) : m_link(link), m_root(std::move(root)) {}

  [[nodiscard]] const std::string& root() const { return m_root; }

  /// Sends a request and reads the answer.
  template <typename Request>
  Result<typename Request::Answer> exchange(const Request& request, const CallLimit& limit,
                                            milliseconds patience = k_file_patience) {
    auto message = wire::outgoing(request);
    auto frame = ask(std::move(message.head), message.body(), is_repeatable(request), patience, limit);
    return frame ? believed(wire::message_from<typename Request::Answer>(frame->head, ErrorCode::protocol_violation,
                                                                         std::move(frame->body)))
                 : fail(frame.error());
  }
  /// After a lost connection, a request is sent again if it is `repeatable`.
  Result<wire::Frame> ask(nlohmann::json head, std::string_view body, bool repeatable, milliseconds patience,
                          const CallLimit& limit);
  /// Drops a staged content or an open copy. If the request is lost, the agent does so when the connection ends.
  void abandon(const std::string& token);

  /// An answer that cannot be understood ends the connection.
  template <typename Value>
  Result<Value> believed(Result<Value> value) {
    return value ? std::move(value) : reject(value.error());
  }
  tl::unexpected<Error> reject(const Error& violation);

  /// Notes the revision that an owner has seen.
  void remember(const std::string& owner, const std::string& path, const std::string& revision);
  /// Notes the outcome of a change. An error after which the change may have been made says how to check that.
  Result<wire::ChangedFile> concluded(const wire::ChangeRequest& request, Result<wire::ChangedFile> changed);

 private:
  template <typename Request>
  static bool is_repeatable(const Request& /*request*/) {
    return wire::properties_of(Request::k_operation).repeatable;
  }
  static bool is_repeatable(const wire::FileEditSetRequest& set) { return set.preview; }
  /// The revision of the file before a change, as a hint for checking; empty if it is unknown.
  std::string revision_hint(const wire::ChangeRequest& request);

  AgentLink& m_link;
  std::string m_root;
  SeenRevisions m_revisions;
};

/// The violation of an answer whose field does not fit the request.
Error malformed(const char* field);
/// The error of a change that may have been made. nullopt if the change was certainly not made.
std::optional<Error> unknown_outcome(const Error& error);

}  // namespace dockbridge::sandbox
