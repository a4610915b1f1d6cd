#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace dockbridge::wire {

/// Names of the values of an enumeration in messages, in the order of the enumeration.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> k_names{};

template <typename Enum>
concept Named = k_names<Enum>
.size() > 0;

template <Named Enum>
std::string_view name_of(Enum value) {
  return k_names<Enum>.at(static_cast<std::size_t>(value));
}

/// The value with this name; nullopt if there is none.
template <Named Enum>
std::optional<Enum> value_named(std::string_view name) {
  const auto found = std::find(k_names<Enum>.begin(), k_names<Enum>.end(), name);
  return found == k_names<Enum>.end() ? std::nullopt : std::optional(static_cast<Enum>(found - k_names<Enum>.begin()));
}

}  // namespace dockbridge::wire
