#include "mcp/transport/http/message_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/call.hpp"
#include "mcp/transport/http/refusal.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr int k_retry_ms = 1000;

/// The HTTP status of an answer of the stateless revision. It also reports some errors.
int status_of(const json& answer, bool envelope_complete) {
  const auto error = answer.is_object() ? answer.find("error") : answer.end();
  if (!answer.is_object() || error == answer.end()) {
    return 200;
  }
  switch (error->value("code", 0)) {
    case k_method_not_found:
      return 404;
    case k_parse_error:
    case k_invalid_request:
    case k_header_mismatch:
    case k_missing_capability:
    case k_unsupported_version:
      return 400;
    case k_invalid_params:
      return envelope_complete ? 200 : 400;
    default:
      return 200;
  }
}

std::string event_text(const Outbox& outbox, std::uint64_t number, const std::string& data) {
  const std::string id = outbox.name().empty() ? "" : fmt::format("id: {}-{}\n", outbox.name(), number);
  return fmt::format("{}event: message\ndata: {}\n\n", id, data);
}

/// Lives as long as a response that is a stream. A stateless client that is gone before its end has cancelled the
/// request.
struct Stream {
  Stream(MessageExchange& the_exchange, std::shared_ptr<void> the_claim, std::shared_ptr<Conversation> the_conversation,
         std::shared_ptr<Outbox> the_outbox, std::shared_ptr<Session> the_session)
      : exchange(the_exchange),
        claim(std::move(the_claim)),
        conversation(std::move(the_conversation)),
        outbox(std::move(the_outbox)),
        session(std::move(the_session)) {
    if (session) {
      ++session->connections;
    }
  }
  ~Stream() {
    if (session) {
      --session->connections;
      session->touch(Clock::now());
    } else if (!ended) {
      exchange.leave_calls(*conversation);
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  MessageExchange& exchange;
  std::shared_ptr<void> claim;
  std::shared_ptr<Conversation> conversation;
  std::shared_ptr<Outbox> outbox;
  std::shared_ptr<Session> session;
  bool ended = false;
};

}  // namespace

Response MessageExchange::as_json(const Turn& turn, const json& answer) {
  Response response;
  response.status = turn.session ? 200 : status_of(answer, turn.envelope_complete);
  response.body = dump(answer);
  response.delivered = turn.outbox->take_delivered();
  return response;
}

void MessageExchange::leave_calls(Conversation& conversation) {
  if (m_stopping) {
    conversation.detach_calls();
  } else {
    conversation.cancel_calls();
  }
}

Response MessageExchange::run(Turn& turn, json message) {
  const auto calls = turn.conversation->receive(std::move(message), turn.outbox);
  if (calls.empty() && turn.outbox->empty()) {
    Response response;
    response.status = 202;
    return response;
  }
  if (calls.empty()) {
    if (const auto answer = turn.outbox->take_sole_answer()) {
      return as_json(turn, *answer);
    }
  }
  if (!turn.session) {
    remember(turn.conversation);  // before it begins, so that it is not missed at the server's end
  }
  for (const auto& call : calls) {
    // Calls outlive their requests, and a batch has many calls, so calls have their own limit.
    m_scheduler.submit(call, {turn.caller.owner, m_calls_per_owner, turn.memory});
  }
  return await_answer(turn);
}

Response MessageExchange::await_answer(Turn& turn) {
  Client& client = turn.request.client;
  const bool streams = turn.request.accepts("text/event-stream");
  const std::uint64_t ticket = turn.outbox->attach(client.wakeup());
  const auto stream_from = Deadline::after(m_keep_alive);
  const auto to_nobody = [&] {
    turn.outbox->abandon();
    Response response;
    response.close = true;
    return response;
  };
  while (true) {
    const bool hung_up = turn.outbox->hung_up();
    if (!hung_up) {
      if (const auto answer = turn.outbox->take_sole_answer()) {
        return client.wait(milliseconds(0)) == Client::Event::gone ? to_nobody() : as_json(turn, *answer);
      }
    }
    if (turn.outbox->finished()) {
      Response response;  // cancelled: there is no answer
      response.status = 202;
      return response;
    }
    if (streams && (!turn.outbox->empty() || stream_from.passed())) {
      const bool prime = turn.session && turn.conversation->negotiated() == Revision::v2025_11_25;
      Response response = events(turn, ticket, prime);
      if (!response.events) {
        turn.outbox->abandon();  // refused: there is no event that the client could resume after
      }
      return response;
    }
    if (!streams && !turn.outbox->empty()) {
      const auto taken = turn.outbox->take(ticket);  // this response has room for the answer only
      if (taken.ended && !taken.messages.empty()) {
        return as_json(turn, json::parse(taken.messages.back().second));
      }
    }
    const milliseconds patience = streams ? stream_from.remaining() : m_keep_alive;
    if (client.wait(patience) == Client::Event::gone) {
      if (!turn.session) {
        leave_calls(*turn.conversation);
      }
      return to_nobody();
    }
  }
}

Response MessageExchange::events(Turn& turn, std::uint64_t ticket, bool prime) {
  const auto claim = m_streams.claim(turn.caller.owner);
  if (!claim) {
    if (!turn.session) {
      turn.conversation->cancel_calls();
    }
    return too_many("streams at a time");
  }
  const auto stream = std::make_shared<Stream>(*this, claim, turn.conversation, turn.outbox, turn.session);
  Response response;
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.headers.emplace_back("X-Accel-Buffering", "no");
  Client& client = turn.request.client;
  response.events = [this, &client, stream, ticket, prime, first = true,
                     answered = false]() mutable -> std::optional<std::string> {
    // The connection asks for more only after it has written the previous text.
    if (const Delivered delivered = answered ? stream->outbox->take_delivered() : nullptr) {
      delivered();
    }
    if (std::exchange(first, false)) {
      return prime ? fmt::format("id: {}-0\nretry: {}\ndata: \n\n", stream->outbox->name(), k_retry_ms)
                   : std::string(":\n\n");
    }
    while (true) {
      const auto taken = stream->outbox->take(ticket);
      std::string text;
      for (const auto& [number, data] : taken.messages) {
        text += event_text(*stream->outbox, number, data);
      }
      if (!text.empty()) {
        answered = stream->outbox->finished();
        return text;
      }
      if (taken.ended) {
        stream->ended = true;
        return std::nullopt;
      }
      switch (client.wait(m_keep_alive)) {
        case Client::Event::woken:
          break;
        case Client::Event::gone:
          return std::nullopt;
        case Client::Event::nothing:
          return ":\n\n";
      }
    }
  };
  return response;
}

void MessageExchange::remember(const std::shared_ptr<Conversation>& conversation) {
  const MutexLock lock(m_mutex);
  m_stateless.remove_if([](const auto& known) { return known.expired(); });
  m_stateless.push_back(conversation);
}

std::vector<std::shared_ptr<Conversation>> MessageExchange::stateless_conversations() const {
  std::vector<std::shared_ptr<Conversation>> all;
  const MutexLock lock(m_mutex);
  for (const auto& known : m_stateless) {
    if (auto conversation = known.lock()) {
      all.push_back(std::move(conversation));
    }
  }
  return all;
}

}  // namespace dockbridge::mcp::http
