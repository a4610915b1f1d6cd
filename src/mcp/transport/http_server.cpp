#include "mcp/transport/http_server.hpp"

#include <fmt/format.h>

#include "mcp/transport/http/loopback.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr milliseconds k_http_finish_patience{1000};
constexpr milliseconds k_http_detach_patience{400};
constexpr milliseconds k_goodbye_patience{200};

Result<void> check_names(const HttpSettings& settings) {
  for (const std::string& host : settings.hosts) {
    if (!http::parse_authority(host)) {
      return fail(ErrorCode::bad_option, fmt::format("Not a host: '{}' (from allow-host)", printable_line(host, 100)),
                  "Accepted: a name or address, with or without a port, such as box.example or [::1]:7332");
    }
  }
  for (const std::string& origin : settings.origins) {
    if (origin != "null" && !http::parse_origin(origin)) {
      return fail(ErrorCode::bad_option,
                  fmt::format("Not an origin: '{}' (from allow-origin)", printable_line(origin, 100)),
                  "Accepted: scheme://host or scheme://host:port, such as https://app.example");
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpSettings& settings, Hub& hub,
                                                      CallScheduler& scheduler) {
  const bool is_local = settings.endpoint.host == "localhost" || http::is_loopback(settings.endpoint.host);
  if (settings.tokens.empty() && !is_local) {
    return fail(ErrorCode::no_token, fmt::format("Cannot listen on {} without a token", settings.endpoint.host));
  }
  std::optional<http::TlsContext> tls;
  if (!settings.tls_certificate.empty()) {
    auto loaded = http::TlsContext::load(settings.tls_certificate, settings.tls_key);
    if (!loaded) {
      return fail(loaded.error());
    }
    tls = std::move(*loaded);
  }
  if (auto known = check_names(settings); !known) {
    return fail(known.error());
  }
  std::vector<std::string> hosts = settings.hosts;
  hosts.push_back(settings.endpoint.host);
  auto server = std::unique_ptr<HttpServer>(new HttpServer);
  server->m_access = std::make_unique<http::Access>(settings.tokens);
  server->m_front = std::make_unique<http::Front>(hub, scheduler, settings.limits, *server->m_access,
                                                  http::Origins(hosts, settings.origins), settings.health);
  http::Front& front = *server->m_front;
  server->m_listener = std::make_unique<http::Listener>(
      settings.limits, std::move(tls), [&front](http::Request& request) { return front.handle(request); }, hub.metrics,
      hub.log);
  if (auto started = server->m_listener->start(settings.endpoint, [&front] { front.sweep(Clock::now()); }); !started) {
    return fail(started.error());
  }
  return server;
}

bool HttpServer::stop() {
  const bool returned = m_front->stop(k_http_finish_patience, k_http_detach_patience);
  m_listener->stop();
  return m_listener->wait_for_connections(Deadline::after(k_goodbye_patience)) && returned;
}

}  // namespace dockbridge::mcp
