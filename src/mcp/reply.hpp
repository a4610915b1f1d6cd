#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mcp/message.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// Called once after an answer was written to the client's transport, by any thread. Dropped without a call if that
/// did not happen. It must not throw, and owns all that it uses, because a resumable stream may keep it for long.
using Delivered = std::function<void()>;

/// Destination of the messages of one request: the client, a batch that is sent when it is complete, or the response of
/// an HTTP request. Any thread may call. A client that closed the connection is no error.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  /// `delivered` may be empty.
  virtual void answer(json message, Delivered delivered) = 0;
  /// There will be no answer, because the request was cancelled.
  virtual void end_without_reply() = 0;
  /// Sends a notification, or a request from this server.
  virtual void send(const json& message) = 0;
  /// Closes the client's connection. A client that can resume reconnects for the rest.
  virtual void hang_up() {}
};

/// The only answer to one request. It is moved along with the work. If it is destroyed without an answer, it sends an
/// internal error, so that no client waits forever.
class Reply {
 public:
  Reply(json id, std::shared_ptr<ReplySink> sink) : m_id(std::move(id)), m_sink(std::move(sink)) {}
  Reply(Reply&&) = default;
  Reply& operator=(Reply&&) = delete;
  ~Reply() {
    if (m_sink) {
      error(k_internal_error, "Internal error: the request was dropped without a reply");
    }
  }

  /// Destination of notifications that belong to this request. nullptr after the answer.
  [[nodiscard]] const std::shared_ptr<ReplySink>& sink() const { return m_sink; }

  void result(json value, Delivered delivered = {}) {
    take()->answer(result_message(m_id, std::move(value)), std::move(delivered));
  }
  void error(int code, const std::string& message, json data = nullptr) {
    take()->answer(error_message(m_id, code, message, std::move(data)), {});
  }
  /// Ends a cancelled request: no more messages are sent for its id.
  void silence() { take()->end_without_reply(); }

 private:
  std::shared_ptr<ReplySink> take() { return std::exchange(m_sink, nullptr); }

  json m_id;
  std::shared_ptr<ReplySink> m_sink;
};

/// Sends each message at once.
class DirectSink : public ReplySink {
 public:
  /// `send` returns false if the client closed the connection.
  explicit DirectSink(std::function<bool(const json&)> send) : m_send(std::move(send)) {}
  void answer(json message, Delivered delivered) override {
    if (m_send(message) && delivered) {
      delivered();
    }
  }
  void end_without_reply() override {}
  void send(const json& message) override { m_send(message); }

 private:
  std::function<bool(const json&)> m_send;
};

/// Collects the answers to a batch of requests, and sends them as one array after the last one.
class BatchSink : public ReplySink {
 public:
  BatchSink(std::size_t expected, std::shared_ptr<ReplySink> whole) : m_missing(expected), m_whole(std::move(whole)) {}
  void answer(json message, Delivered delivered) override {
    const MutexLock lock(m_mutex);
    m_answers.push_back(std::move(message));
    if (delivered) {
      m_deliveries.push_back(std::move(delivered));
    }
    one_less();
  }
  void end_without_reply() override {
    const MutexLock lock(m_mutex);
    one_less();
  }
  void send(const json& message) override { m_whole->send(message); }

 private:
  void one_less() REQUIRES(m_mutex) {
    if (--m_missing > 0) {
      return;
    }
    if (m_answers.empty()) {
      m_whole->end_without_reply();
    } else {
      m_whole->answer(std::move(m_answers), [deliveries = std::move(m_deliveries)] {
        for (const Delivered& delivered : deliveries) {
          delivered();
        }
      });
    }
  }
  Mutex m_mutex;
  std::size_t m_missing GUARDED_BY(m_mutex);
  json m_answers GUARDED_BY(m_mutex) = json::array();
  std::vector<Delivered> m_deliveries GUARDED_BY(m_mutex);
  const std::shared_ptr<ReplySink> m_whole;
};

}  // namespace dockbridge::mcp
