#include "mcp/once_keys.hpp"

#include <algorithm>

#include "util/json_memory.hpp"

namespace dockbridge::mcp {

namespace {

/// Nodes of both maps and the shared pointer's control block.
constexpr std::size_t k_result_overhead = 256;

std::size_t bytes_of(const ToolResult& result) {
  std::size_t bytes = sizeof result + k_result_overhead + string_heap_bytes(result.text.capacity()) +
                      string_heap_bytes(result.subject.capacity()) + json_heap_bytes(result.structured) +
                      json_heap_bytes(result.facts);
  for (const json& block : result.more_content) {
    bytes += k_json_value_bytes + json_heap_bytes(block);
  }
  return bytes;
}

std::string error_code(const ToolResult& result) {
  if (result.protocol_error) {
    return "protocol_error";
  }
  const auto error = result.structured.is_object() ? result.structured.find("error") : result.structured.end();
  const bool known = result.structured.is_object() && error != result.structured.end() && error->is_object();
  return known ? error->value("code", "error") : "error";
}

}  // namespace

OnceOutcome::OnceOutcome(const ToolResult& result) : m_is_error(result.is_error || result.protocol_error) {
  const std::string text = m_is_error ? error_code(result) : result.outcome;
  std::copy_n(text.begin(), std::min(text.size(), m_text.size() - 1), m_text.begin());
}

void OnceKeys::expire(std::uint32_t oldest_s) {
  while (!m_order.empty() && m_order.front()->second.finished_s < oldest_s) {
    const Digest key = m_order.front()->first;
    while (!m_result_order.empty() && m_results.contains(key)) {
      drop_oldest_result();  // results have the same order as their keys
    }
    m_keys.erase(m_order.front());
    m_order.pop_front();
  }
}

void OnceKeys::put(const Digest& key, const Kept& kept, std::shared_ptr<const ToolResult> result) {
  const auto [entry, added] = m_keys.emplace(key, kept);
  if (!added) {
    return;
  }
  m_order.push_back(entry);
  const std::size_t bytes = bytes_of(*result);
  if (bytes > m_max_result_bytes) {
    return;
  }
  while (m_result_bytes + bytes > m_max_result_bytes) {
    drop_oldest_result();
  }
  m_result_bytes += bytes;
  m_results.emplace(key, Body{std::move(result), bytes});
  m_result_order.push_back(key);
}

const OnceKeys::Kept* OnceKeys::find(const Digest& key) const {
  const auto found = m_keys.find(key);
  return found == m_keys.end() ? nullptr : &found->second;
}

std::shared_ptr<const ToolResult> OnceKeys::result(const Digest& key) const {
  const auto found = m_results.find(key);
  return found == m_results.end() ? nullptr : found->second.result;
}

void OnceKeys::drop_oldest_result() {
  if (m_result_order.empty()) {
    return;
  }
  const auto oldest = m_results.find(m_result_order.front());
  m_result_bytes -= oldest->second.bytes;
  m_results.erase(oldest);
  m_result_order.pop_front();
}

}  // namespace dockbridge::mcp
