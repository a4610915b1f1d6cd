#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/sandbox.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::tools {

/// A sentence for a client.
struct Notice {
  std::string process;  ///< id of the process whose end it reports; empty if it reports something else
  std::string sentence;
};

/// A client among those of all owners (`CallContext`).
struct ClientId {
  std::string owner;
  std::string client;
  auto operator<=>(const ClientId&) const = default;  // NOLINT(modernize-use-nullptr): a mistake of clang-tidy 14
};

/// Notices on their way to a client. Unless the delivery of the reply is confirmed, they are shown again later.
class NoticeDelivery {
 public:
  /// Called once. The argument says whether the reply was delivered.
  using OnEnd = std::function<void(bool delivered)>;

  NoticeDelivery(std::vector<std::string> sentences, OnEnd on_end)
      : m_sentences(std::move(sentences)), m_on_end(std::move(on_end)) {}
  ~NoticeDelivery() { end(false); }
  NoticeDelivery(const NoticeDelivery&) = delete;
  NoticeDelivery& operator=(const NoticeDelivery&) = delete;

  /// The sentences that the reply must include.
  [[nodiscard]] const std::vector<std::string>& sentences() const { return m_sentences; }
  void confirm() { end(true); }

 private:
  void end(bool delivered) {
    if (const OnEnd once = std::exchange(m_on_end, nullptr)) {
      once(delivered);
    }
  }

  std::vector<std::string> m_sentences;
  OnEnd m_on_end;
};

/// Sentences that a client receives with the next reply to any of its calls, such as the end of a process that it left
/// running. Any thread may call. Bounded for each owner: the oldest sentences and watches are dropped and counted, and
/// the clients that were used least recently are forgotten.
///
/// A reply that can be resumed may stay undelivered for long. So notices that were not confirmed within a short time
/// are shown again with the next reply, like output in `ShownCursors`.
///
/// No call waits for this: the agent reports the end of a watched process by itself. A client that left no process
/// running costs nothing.
class ClientNotices : public std::enable_shared_from_this<ClientNotices> {
 public:
  /// The time after which an unconfirmed delivery counts as lost.
  static constexpr milliseconds k_patience{200};
  static std::shared_ptr<ClientNotices> make() { return std::shared_ptr<ClientNotices>(new ClientNotices()); }

  void add(const ClientId& client, std::string sentence);
  /// To be called when the reply to a call shows this process. If it has ended, no notice of its end is needed any
  /// more. Otherwise the client gets a notice at its end if it has `started` the process, or a notice was pending.
  void show(const ClientId& client, const std::string& call, sandbox::Sandbox& sandbox, const wire::ProcessState& state,
            bool started);
  /// Takes the pending notices, oldest first, that fit into `room` bytes of the reply to a call. The others stay
  /// pending. Returns null if nothing depends on the delivery of that reply.
  std::shared_ptr<NoticeDelivery> take(const ClientId& client, const std::string& call, sandbox::Sandbox& sandbox,
                                       std::size_t room, Clock::time_point now);

 private:
  struct Watch {
    std::string process;
    bool closed = false;           ///< the command has ended, but not all of its children
    std::uint64_t connection = 0;  ///< number of the connection with the watch; 0: there is no watch
  };
  struct Shown {
    std::string call;
    Notice notice;
  };
  /// Notices and watches that exceeded a limit.
  struct Dropped {
    std::size_t ends = 0;
    std::size_t others = 0;
    std::size_t watches = 0;

    [[nodiscard]] bool empty() const { return ends == 0 && others == 0 && watches == 0; }
  };
  /// The notices of a reply that is still being sent.
  struct Flight {
    Clock::time_point began;
    std::vector<Notice> notices;
    Dropped dropped;
  };
  struct Client {
    std::vector<Notice> pending;
    Dropped dropped;
    std::vector<Shown> shown;  ///< ends shown by replies for which `take` was not called yet
    std::vector<Watch> watches;
    std::map<std::uint64_t, Flight> flights;
    std::uint64_t last_use = 0;

    [[nodiscard]] bool has_nothing() const {
      return pending.empty() && dropped.empty() && shown.empty() && watches.empty() && flights.empty();
    }
  };

  ClientNotices() = default;
  Client& client_of(const ClientId& id) REQUIRES(m_mutex);
  static void bound_pending(Client& client);
  static void give_back(Client& client, Flight flight);
  /// Moves notices that fit into `room` bytes from `client` to `flight`, and returns their sentences.
  static std::vector<std::string> board(Client& client, Flight& flight, std::size_t room);
  // To be called without the lock, because the agent's report may arrive at once, on the same thread.
  void ask_agent(const ClientId& client, sandbox::Sandbox& sandbox, const std::string& process, bool closed);
  void report_end(const ClientId& client, const wire::ProcessState& state);
  void end_flight(const ClientId& client, std::uint64_t flight, bool delivered);

  Mutex m_mutex;
  std::map<ClientId, Client> m_clients GUARDED_BY(m_mutex);
  std::uint64_t m_uses GUARDED_BY(m_mutex) = 0;
};

}  // namespace dockbridge::tools
