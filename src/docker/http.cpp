#include "docker/http.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>

namespace dockbridge::docker {

namespace {

constexpr std::size_t k_max_body_bytes = 8 * 1024 * 1024;
constexpr std::size_t k_max_header_bytes = 64 * 1024;
constexpr std::size_t k_max_stderr_bytes = 4096;
constexpr long k_connect_timeout_ms = 5000;
constexpr std::size_t k_read_bytes = 64 * 1024;

struct CurlDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using CurlHandle = std::unique_ptr<CURL, CurlDeleter>;

/// libcurl is set up at the first request and not at the start of the program: it costs milliseconds and megabytes.
CurlHandle new_handle(const Address& address) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  CurlHandle handle(curl_easy_init());
  curl_easy_setopt(handle.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(handle.get(), CURLOPT_CONNECTTIMEOUT_MS, k_connect_timeout_ms);
  if (address.kind == Address::Kind::unix_socket) {
    curl_easy_setopt(handle.get(), CURLOPT_UNIX_SOCKET_PATH, address.socket_path.c_str());
  }
  return handle;
}

std::string url_of(const Address& address, const std::string& path) {
  return "http://" + (address.kind == Address::Kind::tcp ? address.host_port : "docker") + path;
}

std::size_t collect(char* data, std::size_t size, std::size_t count, void* target) {
  auto& body = *static_cast<std::string*>(target);
  if (body.size() + size * count > k_max_body_bytes) {
    return 0;
  }
  body.append(data, size * count);
  return size * count;
}

struct Download {
  CURL* handle;
  const Http::Receiver& receive;
  HttpResponse response{};
  bool stopped = false;
};

std::size_t pass_on(char* data, std::size_t size, std::size_t count, void* target) {
  auto& download = *static_cast<Download*>(target);
  curl_easy_getinfo(download.handle, CURLINFO_RESPONSE_CODE, &download.response.status);
  if (download.response.status != 200) {
    return collect(data, size, count, &download.response.body);
  }
  download.stopped = !download.receive({data, size * count});
  return download.stopped ? 0 : size * count;
}

Error connection_error(const Address& address, CURL* handle, CURLcode code) {
  long number = 0;
  curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
  const std::string where = fmt::format("the engine at {} ({})", address.url, address.source);
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return {ErrorCode::engine_hung, "No answer in time from " + where};
  }
  if (number == EACCES || number == EPERM) {
    return {ErrorCode::no_permission, "Permission denied: " + where};
  }
  if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) {
    return {ErrorCode::no_engine,
            fmt::format("Cannot reach {}: {}", where,
                        number != 0 ? std::strerror(static_cast<int>(number)) : curl_easy_strerror(code))};
  }
  return {ErrorCode::engine_error, fmt::format("Request to {} failed: {}", where, curl_easy_strerror(code))};
}

/// A hijacked connection. Each chunk of the engine's stream has a header of 8 bytes: 1 or 2 for stdout or stderr, three
/// zeroes, and a big-endian length.
class UpgradedStream : public sandbox::ByteStream {
 public:
  UpgradedStream(CurlHandle handle, curl_socket_t socket, std::string already_read)
      : m_handle(std::move(handle)), m_socket(socket), m_raw(std::move(already_read)) {}

  [[nodiscard]] int read_fd() const override { return m_socket; }
  [[nodiscard]] int write_fd() const override { return m_socket; }
  [[nodiscard]] std::string stderr_text() override { return m_stderr; }

  Result<std::size_t> read(std::span<char> buffer) override {
    if (const std::size_t got = demultiplex(buffer); got > 0) {
      return got;
    }
    std::array<char, k_read_bytes> raw;
    std::size_t count = 0;
    const CURLcode code = curl_easy_recv(m_handle.get(), raw.data(), raw.size(), &count);
    if (code == CURLE_AGAIN) {
      return 0;
    }
    if (code != CURLE_OK || count == 0) {
      return fail(ErrorCode::stream_ended, code == CURLE_OK ? "The stream ended" : curl_easy_strerror(code));
    }
    m_raw.append(raw.data(), count);
    return demultiplex(buffer);
  }

  Result<std::size_t> write(std::string_view bytes) override {
    std::size_t count = 0;
    const CURLcode code = curl_easy_send(m_handle.get(), bytes.data(), bytes.size(), &count);
    if (code == CURLE_AGAIN) {
      return 0;
    }
    if (code != CURLE_OK) {
      return fail(ErrorCode::stream_ended, curl_easy_strerror(code));
    }
    return count;
  }

 private:
  /// Moves received stdout bytes into `buffer`. 0 if more has to be received first.
  std::size_t demultiplex(std::span<char> buffer) {
    std::size_t used = 0;
    std::size_t filled = 0;
    while (filled < buffer.size()) {
      const std::string_view rest = std::string_view(m_raw).substr(used);
      if (m_chunk_left == 0) {
        if (rest.size() < 8) {
          break;
        }
        m_chunk_is_stdout = rest[0] != 2;
        for (std::size_t i = 4; i < 8; ++i) {
          m_chunk_left = (m_chunk_left << 8) | static_cast<unsigned char>(rest[i]);
        }
        used += 8;
        continue;
      }
      if (rest.empty()) {
        break;
      }
      const std::size_t part = std::min({rest.size(), m_chunk_left, buffer.size() - filled});
      if (m_chunk_is_stdout) {
        std::memcpy(buffer.data() + filled, rest.data(), part);
        filled += part;
      } else {
        m_stderr.append(rest.substr(0, std::min(part, k_max_stderr_bytes - m_stderr.size())));
      }
      m_chunk_left -= part;
      used += part;
    }
    m_raw.erase(0, used);
    return filled;
  }

  CurlHandle m_handle;
  curl_socket_t m_socket;
  std::string m_raw;
  std::size_t m_chunk_left = 0;
  bool m_chunk_is_stdout = true;
  std::string m_stderr;
};

/// Waits until the socket is ready; false when the deadline has passed.
bool await(curl_socket_t socket, short events, Deadline deadline) {
  pollfd polled{socket, events, 0};
  return ::poll(&polled, 1, static_cast<int>(deadline.remaining().count())) > 0;
}

Result<void> send_all(CURL* handle, curl_socket_t socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    std::size_t count = 0;
    const CURLcode code = curl_easy_send(handle, bytes.data(), bytes.size(), &count);
    if (code == CURLE_AGAIN && await(socket, POLLOUT, deadline)) {
      continue;
    }
    if (code != CURLE_OK) {
      return fail(ErrorCode::engine_error, "Cannot send a request to the engine");
    }
    bytes.remove_prefix(count);
  }
  return {};
}

/// The response's head up to the blank line, and the bytes received after it.
Result<std::string> receive_headers(CURL* handle, curl_socket_t socket, Deadline deadline) {
  std::string received;
  while (received.find("\r\n\r\n") == std::string::npos) {
    std::array<char, 4096> buffer{};
    std::size_t count = 0;
    const CURLcode code = curl_easy_recv(handle, buffer.data(), buffer.size(), &count);
    if (code == CURLE_AGAIN) {
      if (!await(socket, POLLIN, deadline)) {
        return fail(ErrorCode::engine_hung, "The engine did not start the agent in time");
      }
      continue;
    }
    if (code != CURLE_OK || count == 0 || received.size() > k_max_header_bytes) {
      return fail(ErrorCode::engine_error, "The engine closed the connection while it started the agent");
    }
    received.append(buffer.data(), count);
  }
  return received;
}

}  // namespace

std::string percent_encoded(const std::string& text) {
  const std::unique_ptr<char, decltype(&curl_free)> encoded(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), curl_free);
  return encoded ? std::string(encoded.get()) : throw std::bad_alloc();
}

Result<HttpResponse> Http::request(const std::string& method, const std::string& path, const std::string& body,
                                   const std::string& content_type, Deadline deadline) const {
  const CurlHandle handle = new_handle(m_address);
  const std::string url = url_of(m_address, path);
  HttpResponse response;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(nullptr, curl_slist_free_all);
  curl_easy_setopt(handle.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_TIMEOUT_MS, std::max<long>(1, deadline.remaining().count()));
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &response.body);
  if (method == "HEAD") {
    curl_easy_setopt(handle.get(), CURLOPT_NOBODY, 1L);
  } else if (method != "GET") {
    // "Expect:" is empty. Otherwise libcurl waits up to a second for "100 Continue" before it sends a large body.
    for (const std::string& line : {"Content-Type: " + content_type, std::string("Expect:")}) {
      headers.reset(curl_slist_append(headers.release(), line.c_str()));
    }
    curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(handle.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(handle.get(), CURLOPT_POSTFIELDS, body.c_str());
  }
  const CURLcode code = curl_easy_perform(handle.get());
  if (code != CURLE_OK) {
    return fail(connection_error(m_address, handle.get(), code));
  }
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &response.status);
  return response;
}

Result<HttpResponse> Http::download(const std::string& path, const Receiver& receive, Deadline deadline) const {
  const CurlHandle handle = new_handle(m_address);
  const std::string url = url_of(m_address, path);
  Download download{handle.get(), receive};
  curl_easy_setopt(handle.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_TIMEOUT_MS, std::max<long>(1, deadline.remaining().count()));
  curl_easy_setopt(handle.get(), CURLOPT_BUFFERSIZE, static_cast<long>(k_read_bytes));
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, pass_on);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &download);
  const CURLcode code = curl_easy_perform(handle.get());
  if (code != CURLE_OK && !download.stopped) {
    return fail(connection_error(m_address, handle.get(), code));
  }
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &download.response.status);
  return std::move(download.response);
}

Result<std::unique_ptr<sandbox::ByteStream>> Http::upgrade(const std::string& path, const std::string& json,
                                                           Deadline deadline) const {
  CurlHandle handle = new_handle(m_address);
  const std::string url = url_of(m_address, "/");
  curl_easy_setopt(handle.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_BUFFERSIZE, static_cast<long>(k_read_bytes));  // bounds each receive, too
  if (const CURLcode code = curl_easy_perform(handle.get()); code != CURLE_OK) {
    return fail(connection_error(m_address, handle.get(), code));
  }
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(handle.get(), CURLINFO_ACTIVESOCKET, &socket);
  const std::string request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
      "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      path, json.size(), json);
  if (auto sent = send_all(handle.get(), socket, request, deadline); !sent) {
    return fail(sent.error());
  }
  auto received = receive_headers(handle.get(), socket, deadline);
  if (!received) {
    return fail(received.error());
  }
  const std::size_t end = received->find("\r\n\r\n") + 4;
  if (!received->starts_with("HTTP/1.1 101") && !received->starts_with("HTTP/1.1 200")) {
    const std::string status = received->substr(0, received->find("\r\n"));
    return fail(ErrorCode::exec_failed,
                fmt::format("The engine rejected the start of the agent: {} {}", status, received->substr(end)));
  }
  return std::make_unique<UpgradedStream>(std::move(handle), socket, received->substr(end));
}

}  // namespace dockbridge::docker
