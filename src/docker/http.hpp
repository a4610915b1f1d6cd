#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "docker/address.hpp"
#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "util/clock.hpp"

namespace dockbridge::docker {

struct HttpResponse {
  long status = 0;
  std::string body;
};

/// The text as a part of a path or query.
std::string percent_encoded(const std::string& text);

/// HTTP to an engine, over its Unix socket or TCP. The one place that knows libcurl. Any thread may call.
class Http {
 public:
  explicit Http(Address address) : m_address(std::move(address)) {}

  [[nodiscard]] const Address& address() const { return m_address; }
  /// Receives a part of a body; returning false stops the transfer.
  using Receiver = std::function<bool(std::string_view bytes)>;

  /// `content_type` is sent with a body only.
  Result<HttpResponse> request(const std::string& method, const std::string& path, const std::string& body,
                               const std::string& content_type, Deadline deadline) const;
  /// Sends a GET. A body with status 200 is streamed to `receive`; any other body is in the response.
  Result<HttpResponse> download(const std::string& path, const Receiver& receive, Deadline deadline) const;
  /// Posts JSON and requests an upgrade to a raw stream, which docker calls hijacking. The stream carries stdout and
  /// stderr in the engine's multiplexed form, which is undone here.
  Result<std::unique_ptr<sandbox::ByteStream>> upgrade(const std::string& path, const std::string& json,
                                                       Deadline deadline) const;

 private:
  Address m_address;
};

}  // namespace dockbridge::docker
