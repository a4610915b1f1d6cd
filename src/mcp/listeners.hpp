#pragma once

#include <map>
#include <memory>
#include <vector>

#include "mcp/bulletin.hpp"
#include "mcp/reply.hpp"
#include "mcp/result_format.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// The open subscriptions/listen requests of one client of the stateless revision. Such a request gets its reply when
/// the server stops, and none if the client cancels it. Any thread may call.
class Listeners {
 public:
  struct Listener {
    Reply reply;
    std::vector<std::shared_ptr<void>> watches;  ///< of resources; released with this entry
    Bulletin::Ticket ticket;                     ///< sends notifications while it lives
  };
  static constexpr std::size_t k_max_listeners = 20;

  Listeners() = default;
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  [[nodiscard]] bool has_id(const json& id) const;
  [[nodiscard]] bool is_full() const;
  void add(const json& id, Listener listener);
  /// Ends a request without an answer; does nothing if no open request has this id.
  void cancel(const json& id);
  /// Answers all open requests.
  void end_all(const ResultFormat& format);

 private:
  using Open = std::map<json, Listener>;
  static void drop(Listener& listener);

  mutable Mutex m_mutex;
  Open m_open GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp
