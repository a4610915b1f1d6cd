#include "mcp/transport/http/socket.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace dockbridge::mcp::http {

namespace {

std::string tls_error() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  return text.data();
}

}  // namespace

Result<TlsContext> TlsContext::load(const std::string& certificate, const std::string& key) {
  TlsContext tls;
  tls.m_context = std::shared_ptr<ssl_ctx_st>(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX* context = tls.m_context.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return fail(ErrorCode::bad_certificate, fmt::format("Not a certificate: {}: {}", certificate, tls_error()));
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return fail(ErrorCode::bad_key, fmt::format("{} is not the key of {}: {}", key, certificate, tls_error()));
  }
  return tls;
}

Socket::~Socket() {
  if (m_tls != nullptr) {
    SSL_shutdown(m_tls);  // sends a close alert if that does not block
    SSL_free(m_tls);
  }
}

bool Socket::await(short events, Deadline deadline) const {
  while (true) {
    pollfd polled{m_fd.get(), events, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(deadline.remaining().count()));
    if (ready > 0) {
      return true;
    }
    if (ready == 0 || errno != EINTR) {
      return false;
    }
  }
}

/// Waits until TLS can continue after an incomplete operation. False if it cannot.
bool Socket::await_tls(int outcome, Deadline deadline) {
  switch (SSL_get_error(m_tls, outcome)) {
    case SSL_ERROR_WANT_READ:
      return await(POLLIN, deadline);
    case SSL_ERROR_WANT_WRITE:
      return await(POLLOUT, deadline);
    default:
      ERR_clear_error();
      return false;
  }
}

bool Socket::shake_hands(const TlsContext& tls, Deadline deadline) {
  m_tls = SSL_new(tls.get());
  SSL_set_fd(m_tls, m_fd.get());
  while (true) {
    const int outcome = SSL_accept(m_tls);
    if (outcome == 1) {
      return true;
    }
    if (!await_tls(outcome, deadline)) {
      return false;
    }
  }
}

ssize_t Socket::read(char* into, std::size_t size, Deadline deadline) {
  while (m_tls != nullptr) {
    const int got = SSL_read(m_tls, into, static_cast<int>(size));
    if (got > 0) {
      return got;
    }
    if (SSL_get_error(m_tls, got) == SSL_ERROR_ZERO_RETURN) {
      return 0;
    }
    if (!await_tls(got, deadline)) {
      return -1;
    }
  }
  while (true) {
    const ssize_t got = ::recv(m_fd.get(), into, size, 0);
    if (got >= 0) {
      return got;
    }
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK;
    if ((!later && errno != EINTR) || (later && !await(POLLIN, deadline))) {
      return -1;
    }
  }
}

bool Socket::write(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    ssize_t sent = 0;
    if (m_tls != nullptr) {
      sent = SSL_write(m_tls, bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)));
      if (sent <= 0 && !await_tls(static_cast<int>(sent), deadline)) {
        return false;
      }
    } else {
      sent = ::send(m_fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      const bool later = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      if (sent < 0 && ((!later && errno != EINTR) || (later && !await(POLLOUT, deadline)))) {
        return false;
      }
    }
    bytes.remove_prefix(sent > 0 ? static_cast<std::size_t>(sent) : 0);
  }
  return true;
}

void Socket::shut_down() {
  ::shutdown(m_fd.get(), SHUT_RD);
}

}  // namespace dockbridge::mcp::http
