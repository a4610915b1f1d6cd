#include "mcp/once.hpp"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#include "util/encoding.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_attempts = 1000;
constexpr milliseconds k_lifetime{3'600'000};
constexpr std::size_t k_digest_bytes = 16;

/// The first half of SHA-256.
std::string digest(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("no digest could be made");
  }
  return to_hex({reinterpret_cast<const char*>(bytes.data()), k_digest_bytes});
}

}  // namespace

OnceMark once_mark(const std::string& owner, const std::string& key, const std::string& what) {
  // The length keeps owner and key apart, whatever is in them.
  return {digest(std::to_string(owner.size()) + ":" + owner + key), digest(what)};
}

Once::Entered Once::enter(const std::string& owner, const std::string& key, const std::string& what) {
  const std::lock_guard lock(m_mutex);
  while (!m_order.empty() && (m_order.size() >= k_max_attempts || m_order.front().first + k_lifetime < Clock::now())) {
    m_attempts.erase(m_order.front().second);
    m_order.pop_front();
  }
  const Key whole{owner, key};
  std::shared_ptr<Attempt>& attempt = m_attempts[whole];
  if (attempt) {
    const std::lock_guard attempt_lock(attempt->m_mutex);
    if (!attempt->m_given_up) {
      return {attempt, false, attempt->m_what != what};
    }
  } else {
    m_order.emplace_back(Clock::now(), whole);
  }
  attempt = std::make_shared<Attempt>(what);
  return {attempt, true, false};
}

void Once::Attempt::finish(const ToolResult& result) {
  const std::lock_guard lock(m_mutex);
  m_result = result;
  m_changed.notify_all();
}

void Once::Attempt::give_up() {
  const std::lock_guard lock(m_mutex);
  m_given_up = true;
  m_changed.notify_all();
}

std::optional<ToolResult> Once::Attempt::wait(const std::stop_token& stop) {
  std::unique_lock lock(m_mutex);
  m_changed.wait(lock, stop, [&] { return m_result || m_given_up; });
  return m_result;
}

}  // namespace dockbridge::mcp
