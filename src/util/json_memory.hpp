#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace dockbridge {

// Heap bytes of the parts of a JSON value, including the allocator's header. Upper bounds for libstdc++ on 64-bit
// machines.

inline constexpr std::size_t k_json_value_bytes = sizeof(nlohmann::json);
inline constexpr std::size_t k_json_array_bytes = 32;   ///< the vector, without its elements
inline constexpr std::size_t k_json_object_bytes = 64;  ///< the map, without its members
inline constexpr std::size_t k_json_member_bytes = 96;  ///< the map's node with a short key and the value
inline constexpr std::size_t k_json_string_bytes = 48;  ///< the string object of a value

/// Heap bytes of a string's characters; 0 if they fit into the string object.
inline std::size_t string_heap_bytes(std::size_t capacity) {
  constexpr std::size_t k_inside = 15;
  constexpr std::size_t k_block = 16;
  return capacity <= k_inside ? 0 : (capacity + 1 + k_block + k_block - 1) / k_block * k_block;
}

/// Heap bytes of a whole value. Recursive, so only for values of bounded depth.
inline std::size_t json_heap_bytes(const nlohmann::json& value) {
  std::size_t bytes = 0;
  if (value.is_string()) {
    bytes = k_json_string_bytes + string_heap_bytes(value.get_ref<const std::string&>().capacity());
  } else if (value.is_array()) {
    const auto& elements = value.get_ref<const nlohmann::json::array_t&>();
    bytes = k_json_array_bytes + elements.capacity() * k_json_value_bytes;
    for (const auto& element : elements) {
      bytes += json_heap_bytes(element);
    }
  } else if (value.is_object()) {
    bytes = k_json_object_bytes;
    for (const auto& [key, member] : value.get_ref<const nlohmann::json::object_t&>()) {
      bytes += k_json_member_bytes + string_heap_bytes(key.capacity()) + json_heap_bytes(member);
    }
  }
  return bytes;
}

}  // namespace dockbridge
