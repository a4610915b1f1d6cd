#pragma once

#include <doctest/doctest.h>

#include <concepts>
#include <nlohmann/json.hpp>
#include <string>

namespace dockbridge::test {

/// Returns the member of an object or the element of an array. More keys select nested values. Fails the test, with the
/// key and the document, if the value is missing: operator[] of a const json has undefined behaviour then.
template <typename Json, typename Key, typename... Keys>
const Json& field(const Json& document, const Key& key, const Keys&... more) {
  const Json* found = nullptr;
  if constexpr (std::integral<Key>) {
    const auto index = static_cast<std::size_t>(key);
    found = document.is_array() && index < document.size() ? &document[index] : nullptr;
  } else if (const auto at = document.find(key); at != document.end()) {
    found = &*at;
  }
  if (found == nullptr) {
    FAIL("no field '" << key << "' in " << document.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  if constexpr (sizeof...(more) == 0) {
    return *found;
  } else {
    return field(*found, more...);
  }
}

}  // namespace dockbridge::test
