#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>

#include "error/error.hpp"
#include "mcp/message.hpp"
#include "mcp/reply.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// Requests from this server to one client of a handshake revision, and the client's answers. Any thread may call.
class ClientQuestions {
 public:
  /// Sends several requests, such as {"name": {"method": …, "params": …}}, and waits for the answers, which are
  /// returned under the same names. Fails if the client refuses one, `stop` is requested, or the deadline passes.
  Result<json> ask(const json& requests, ReplySink& sink, const std::stop_token& stop, Deadline deadline);
  /// Accepts an answer from the client. An answer that matches no open request is dropped.
  void take_answer(Answer answer);

 private:
  Mutex m_mutex;
  std::condition_variable_any m_answered;
  std::uint64_t m_next GUARDED_BY(m_mutex) = 1;
  std::map<json, std::optional<json>> m_open GUARDED_BY(m_mutex);  // by request id, with the answer if it has arrived
};

}  // namespace dockbridge::mcp
