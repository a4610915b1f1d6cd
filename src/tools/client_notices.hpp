#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace dockbridge::tools {

/// A sentence for a client.
struct Notice {
  std::string process;  ///< id of the process whose end it reports; empty if it reports something else
  std::string sentence;
};

/// Notices on their way to a client. Unless the delivery of the reply is confirmed, they are given back at the end.
class NoticeDelivery {
 public:
  using GiveBack = std::function<void(std::vector<Notice> notices)>;

  /// `shown`: those that the rest of the reply makes unnecessary.
  NoticeDelivery(std::vector<Notice> notices, std::vector<Notice> shown, GiveBack give_back)
      : m_notices(std::move(notices)), m_shown(std::move(shown)), m_give_back(std::move(give_back)) {}
  ~NoticeDelivery();
  NoticeDelivery(const NoticeDelivery&) = delete;
  NoticeDelivery& operator=(const NoticeDelivery&) = delete;

  /// Those that the reply has to include.
  [[nodiscard]] const std::vector<Notice>& notices() const { return m_notices; }
  void confirm() { m_give_back = nullptr; }

 private:
  std::vector<Notice> m_notices;
  std::vector<Notice> m_shown;
  GiveBack m_give_back;
};

/// Sentences that a client is told with the next reply to any of its calls, such as the end of a process that it left
/// running. Any thread may call. Bounded: the oldest sentences, watches and clients are dropped.
///
/// No call waits for this: the agent reports the end of a watched process by itself. A client that left no process
/// running costs nothing.
class ClientNotices : public std::enable_shared_from_this<ClientNotices> {
 public:
  static std::shared_ptr<ClientNotices> make() { return std::shared_ptr<ClientNotices>(new ClientNotices); }

  void add(const std::string& client, std::string sentence);
  /// To be called when the reply to a call shows this process. If it has ended, its end needs no notice any more.
  /// Otherwise the client gets one at its end, if it has `started` the process, or was to get one before.
  void show(const std::string& client, const std::string& call, sandbox::Sandbox& sandbox,
            const wire::ProcessState& state, bool started);
  /// What depends on the delivery of the reply to a call; null if nothing does.
  std::shared_ptr<NoticeDelivery> take(const std::string& client, const std::string& call, sandbox::Sandbox& sandbox);

 private:
  struct Watch {
    std::string process;
    bool closed = false;           ///< the command has ended, something that it started has not
    std::uint64_t connection = 0;  ///< the one that the agent reports over; 0: it was not asked
  };
  struct Shown {
    std::string call;
    Notice notice;
  };
  struct Client {
    std::vector<Notice> pending;
    std::vector<Shown> shown;  ///< by replies that were not taken yet
    std::vector<Watch> watches;
    std::uint64_t last_use = 0;
  };

  ClientNotices() = default;
  // To be called with the lock held.
  Client& client_of(const std::string& name);
  static void push(Client& client, Notice notice);
  // To be called without the lock, because the agent's report may come at once, on the same thread.
  void ask_agent(const std::string& client, sandbox::Sandbox& sandbox, const std::string& process, bool closed);
  void report_end(const std::string& client, const wire::ProcessState& state);
  void give_back(const std::string& client, std::vector<Notice> notices);

  std::mutex m_mutex;  // guards everything below
  std::map<std::string, Client> m_clients;
  std::uint64_t m_uses = 0;
};

}  // namespace dockbridge::tools
