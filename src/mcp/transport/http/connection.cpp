#include "mcp/transport/http/connection.hpp"

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>

#include <array>
#include <charconv>

namespace dockbridge::mcp::http {

namespace {

constexpr std::size_t k_read_bytes = 16 * 1024;
constexpr std::size_t k_flush_bytes = 256 * 1024;

bool same_name(std::string_view one, std::string_view other) {
  return one.size() == other.size() && std::equal(one.begin(), one.end(), other.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
         });
}

std::string trimmed_value(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? ""
                                         : std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

/// The header lines after the request line. nullopt if a line is ambiguous, because a proxy may parse it differently: a
/// space before the colon, a continued line, or an incomplete line end.
std::optional<std::vector<std::pair<std::string, std::string>>> headers_of(std::string_view head) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (std::size_t end = head.find("\r\n"); end != std::string_view::npos;) {
    head.remove_prefix(end + 2);
    end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    const std::string_view name = line.substr(0, line.find(':'));
    if (name.empty() || name.size() == line.size() || name.find_first_of(" \t") != std::string_view::npos ||
        line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
      return std::nullopt;
    }
    headers.emplace_back(name, trimmed_value(line.substr(name.size() + 1)));
  }
  return headers;
}

}  // namespace

std::string refusal(int status, const char* reason, const char* retry_after) {
  const std::string body = fmt::format(R"({{"error":"{}"}})", reason);
  const std::string later = retry_after == nullptr ? "" : fmt::format("Retry-After: {}\r\n", retry_after);
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}", status,
      reason, body.size(), later, body);
}

Client::Event Client::wait(milliseconds at_most) const {
  std::array<pollfd, 2> polled = {pollfd{m_wakeup->fd(), POLLIN, 0}, pollfd{m_socket.fd(), POLLRDHUP, 0}};
  const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(at_most.count()));
  if (ready > 0 && polled[1].revents != 0) {
    return Event::gone;  // first, so that an answer does not count as delivered to a client that left before it
  }
  if (ready > 0 && polled[0].revents != 0) {
    m_wakeup->reset();
    return Event::woken;
  }
  return Event::nothing;
}

std::optional<std::string> Request::header(std::string_view name) const {
  std::optional<std::string> found;
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) {
      if (found) {
        return std::nullopt;
      }
      found = value;
    }
  }
  return found;
}

std::size_t Request::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const auto& entry) { return same_name(entry.first, name); }));
}

bool Request::accepts(std::string_view type) const {
  const std::string accept = header("Accept").value_or("*/*");
  const std::string_view range = type.substr(0, type.find('/') + 1);
  return accept.find(type) != std::string::npos || accept.find("*/*") != std::string::npos ||
         accept.find(std::string(range) + "*") != std::string::npos;
}

/// The library's server without its sockets, threads and routes.
class Connection::Library : private httplib::Server, private httplib::Stream {
 public:
  Library(Socket& socket, Shared shared) : m_socket(socket), m_shared(shared), m_client(socket, m_wakeup) {
    svr_sock_ = 0;  // the library treats a server without a socket as one that is stopping
    set_keep_alive_timeout(std::chrono::duration_cast<seconds>(shared.limits.idle_time).count());
    set_keep_alive_max_count(1'000'000);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      m_asked = true;
      respond(request, response);
      return HandlerResponse::Handled;
    });
    // The library itself replies to a head that it cannot parse, and would then parse the body as the next request.
    set_error_handler(httplib::Server::Handler([this](const httplib::Request&, httplib::Response& response) {
      if (!m_asked) {
        m_close = true;
        m_shared.metrics.count_refusal(std::to_string(response.status));
        m_shared.metrics.count_http_request(response.status);
        response.set_header("Connection", "close");
      }
    }));
    // The library would send what() to the client.
    set_exception_handler([this](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
      m_close = true;
      response.status = 500;
    });
  }

  void serve() {
    while (await_head() && !m_close && m_shared.on_request(true)) {
      bool closed = false;
      m_asked = false;
      const bool served = process_request(*this, false, closed, [](httplib::Request& request) {
        request.headers.erase("Accept-Encoding");  // answers are not compressed,
        request.ranges.clear();                    // nor cut
      });
      const bool sent = flush() && served;
      if (const auto delivered = std::exchange(m_delivered, nullptr); sent && delivered) {
        delivered();
      }
      if (!sent || closed || m_close || m_shared.stopping) {
        return;
      }
      m_shared.on_request(false);
    }
  }

 private:
  /// Reads until the head is complete. Replies with an error and gives up if the head is too long or too slow.
  bool await_head() {
    m_input.erase(0, m_taken);
    m_taken = 0;
    std::size_t searched = 0;
    auto deadline = Deadline::after(m_input.empty() ? m_shared.limits.idle_time : m_shared.limits.header_time);
    while (true) {
      const std::size_t end = m_input.find("\r\n\r\n", searched);
      if (end != std::string::npos && end <= m_shared.limits.header_bytes) {
        // Headers as they were sent. The library decodes %XX in them and adds its own.
        auto headers = headers_of(std::string_view(m_input).substr(0, end));
        if (!headers) {
          return turn_away(400, "Bad Request");
        }
        m_headers = std::move(*headers);
        return true;
      }
      if (m_input.size() > m_shared.limits.header_bytes) {
        return turn_away(431, "Request Header Fields Too Large");
      }
      searched = m_input.size() < 3 ? 0 : m_input.size() - 3;
      const bool first = m_input.empty();
      const ssize_t got = read_more(k_read_bytes, deadline);
      if (got <= 0) {
        return m_input.empty() || got == 0 ? false : turn_away(408, "Request Timeout");
      }
      if (first) {
        deadline = Deadline::after(m_shared.limits.header_time);
      }
    }
  }

  bool turn_away(int status, const char* reason) {
    m_shared.metrics.count_refusal(std::to_string(status));
    m_shared.metrics.count_http_request(status);
    m_output += refusal(status, reason);
    (void)flush();
    return false;
  }

  ssize_t read_more(std::size_t most, Deadline deadline) {
    const std::size_t before = m_input.size();
    m_input.resize(before + most);
    const ssize_t got = m_socket.read(m_input.data() + before, most, deadline);
    m_input.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    m_shared.metrics.count_bytes(static_cast<std::uint64_t>(std::max<ssize_t>(got, 0)), 0);
    return got;
  }

  void respond(const httplib::Request& from, httplib::Response& to) {
    Request request{from.method, from.path, std::move(m_headers), m_client, {}};
    bool body_read = false;
    const bool has_body = request.count("Content-Length") > 0 || request.count("Transfer-Encoding") > 0;
    request.read_body = [&](const Request::Room& room) -> Result<std::string> {
      body_read = true;
      return read_body(request, room);
    };
    Response response = m_shared.handler(request);
    m_delivered = std::move(response.delivered);
    m_shared.metrics.count_http_request(response.status);
    m_close = m_close || response.close || (has_body && !body_read);
    to.status = response.status;
    for (const auto& [name, value] : response.headers) {
      to.set_header(name, value);
    }
    if (m_close && !response.events) {
      to.set_header("Connection", "close");
    }
    if (response.events) {
      to.set_chunked_content_provider(
          "text/event-stream",
          [this, events = response.events](std::size_t, httplib::DataSink& sink) { return send_event(events, sink); });
    } else if (!response.body.empty()) {
      to.body = std::move(response.body);
      to.set_header("Content-Type", response.content_type);
    }
  }

  bool send_event(const std::function<std::optional<std::string>()>& events, httplib::DataSink& sink) {
    if (!flush()) {  // the head before the first event, and each event at once
      return false;
    }
    const auto next = events();
    if (!next) {
      sink.done();
      return true;
    }
    return next->empty() || (sink.write(next->data(), next->size()) && flush());
  }

  Result<std::string> read_body(const Request& request, const Request::Room& room) {
    const auto given = request.header("Content-Length");
    std::size_t length = 0;
    const char* end = given ? given->data() + given->size() : nullptr;
    const auto read = given ? std::from_chars(given->data(), end, length) : std::from_chars_result{};
    if (!given || given->empty() || read.ptr != end) {
      m_close = true;
      return fail(ErrorCode::bad_length, "The request needs exactly one Content-Length");
    }
    if (read.ec != std::errc() || length > m_shared.limits.body_bytes) {
      m_close = true;
      return fail(ErrorCode::too_large, fmt::format("The body exceeds {} bytes", m_shared.limits.body_bytes));
    }
    if (!room(length)) {
      m_close = true;
      return fail(ErrorCode::busy, "The concurrent requests use too much memory");
    }
    if (!flush()) {  // the client may wait for "100 Continue"
      return fail(ErrorCode::too_slow, "The client closed the connection");
    }
    const auto deadline = Deadline::after(m_shared.limits.body_time);
    m_input.erase(0, m_taken);
    m_taken = 0;
    m_input.reserve(length);  // growing by doubling would need twice as much memory
    while (m_input.size() - m_taken < length) {
      if (read_more(std::min<std::size_t>(length - (m_input.size() - m_taken), 1 << 20), deadline) <= 0) {
        m_close = true;
        return fail(ErrorCode::too_slow, "The body did not arrive in time");
      }
    }
    std::string body;
    if (m_input.size() == length && length > k_flush_bytes) {
      body.swap(m_input);  // avoids a copy
    } else {
      body.assign(m_input, 0, length);
      m_taken = length;
    }
    return body;
  }

  bool flush() {
    if (m_output.empty()) {
      return true;
    }
    const bool sent = m_socket.write(m_output, Deadline::after(m_shared.limits.write_time));
    m_shared.metrics.count_bytes(0, m_output.size());
    m_output.clear();
    m_broken = m_broken || !sent;
    return sent;
  }

  // The library's stream. Reads from the buffered input and collects the output.
  bool is_readable() const override { return m_taken < m_input.size(); }
  bool is_writable() const override { return !m_broken; }
  ssize_t read(char* into, std::size_t size) override {
    const std::size_t count = std::min(size, m_input.size() - m_taken);
    std::copy_n(m_input.data() + m_taken, count, into);
    m_taken += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    m_output.append(bytes, size);
    return m_output.size() < k_flush_bytes || flush() ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = m_socket.peer();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return 0; }

  Socket& m_socket;
  Shared m_shared;
  std::shared_ptr<Wakeup> m_wakeup = std::make_shared<Wakeup>();
  Client m_client;
  std::string m_input;
  std::size_t m_taken = 0;  // of the input
  std::vector<std::pair<std::string, std::string>> m_headers;
  std::string m_output;
  std::function<void()> m_delivered;  // called when the response has been written
  bool m_broken = false;
  bool m_asked = false;  // whether the request got to the handler
  bool m_close = false;
};

Connection::Connection(Socket& socket, Shared shared) : m_library(std::make_unique<Library>(socket, shared)) {}
Connection::~Connection() = default;

void Connection::serve() {
  m_library->serve();
}

}  // namespace dockbridge::mcp::http
