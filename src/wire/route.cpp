#include "wire/route.hpp"

#include <nlohmann/json.hpp>

#include "wire/frame.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

/// Receives the events of the library's parser. A later field replaces an earlier one of the same name, as it does in a
/// JSON value.
class RouteScanner : public nlohmann::json_sax<json> {
 public:
  [[nodiscard]] const Route& route() const { return m_route; }

  bool null() override { return take_value(); }
  bool boolean(bool value) override {
    m_route.is_staging = is_at(1, "staging") ? value : m_route.is_staging;
    return take_value();
  }
  bool number_integer(std::int64_t /*value*/) override { return take_value(); }
  bool number_unsigned(std::uint64_t value) override {
    m_route.id = is_at(1, "id") ? std::optional(value) : m_route.id;
    return take_value();
  }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return take_value(); }
  bool string(std::string& value) override {
    if (is_at(1, "op")) {
      m_route.op = std::move(value);
    } else if (is_at(1, "staging")) {
      m_route.staging = std::move(value);
    } else if (m_is_in_error && is_at(2, "code")) {
      m_route.error_code = std::move(value);
    }
    return take_value();
  }
  bool binary(json::binary_t& /*value*/) override { return false; }

  bool key(std::string& name) override {
    m_key = std::move(name);
    if (is_at(1, "id")) {
      m_route.id.reset();
    } else if (is_at(1, "op")) {
      m_route.op.reset();
    } else if (is_at(1, "staging")) {
      m_route.staging.clear();
      m_route.is_staging = false;
    } else if (is_at(1, "error")) {
      m_route.is_error = true;
      m_route.error_code.clear();
    }
    return true;
  }
  bool start_object(std::size_t /*size*/) override {
    m_is_in_error = m_is_in_error || is_at(1, "error");
    return descend();
  }
  bool end_object() override {
    --m_depth;
    m_is_in_error = m_is_in_error && m_depth > 1;
    return true;
  }
  bool start_array(std::size_t /*size*/) override { return m_depth > 0 && descend(); }  // the head is no array
  bool end_array() override {
    --m_depth;
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*last*/, const json::exception& /*error*/) override {
    return false;
  }

 private:
  [[nodiscard]] bool is_at(int depth, std::string_view name) const { return m_depth == depth && m_key == name; }
  /// Only an object may be the whole head.
  [[nodiscard]] bool take_value() const { return m_depth > 0; }
  bool descend() {
    m_key.clear();
    return ++m_depth <= k_max_head_depth;
  }

  Route m_route;
  int m_depth = 0;
  std::string m_key;  // the latest one
  bool m_is_in_error = false;
};

}  // namespace

Result<Route> route_of(std::string_view head) {
  RouteScanner scanner;
  if (!json::sax_parse(head, &scanner)) {
    return fail(ErrorCode::protocol_violation,
                "A frame's head is not a JSON object of at most " + std::to_string(k_max_head_depth) + " levels");
  }
  return scanner.route();
}

}  // namespace dockbridge::wire
