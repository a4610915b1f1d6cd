#include "mcp/peer.hpp"

#include <fmt/format.h>

#include "util/json_memory.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_capabilities_bytes = 64UL * 1024;
constexpr std::size_t k_max_client_name = 100;

tl::unexpected<ProtocolError> invalid(std::string message) {
  return tl::unexpected<ProtocolError>({k_invalid_params, std::move(message), nullptr});
}

}  // namespace

json meta_field(const json& params, const char* name) {
  const auto meta = params.find("_meta");
  if (meta == params.end() || !meta->is_object()) {
    return nullptr;
  }
  const auto field = meta->find(name);
  return field == meta->end() ? json(nullptr) : *field;
}

std::optional<std::string> idempotency_key(const json& params) {
  const json key = meta_field(params, k_meta_idempotency_key);
  const bool keyed = key.is_string() && !key.get_ref<const std::string&>().empty();
  return keyed ? std::optional(key.get<std::string>()) : std::nullopt;
}

Representation requested_representation(const json& params, Representation usual) {
  const json asked = meta_field(params, k_meta_structured);
  return asked.is_boolean() ? (asked.get<bool>() ? Representation::structured : Representation::text) : usual;
}

std::string name_of_client(const json& client_info) {
  const auto name = client_info.is_object() ? text_param(client_info, "name") : std::nullopt;
  return printable_line(name.value_or(""), k_max_client_name);
}

bool usable_capabilities(const json& capabilities) {
  return capabilities.is_object() && json_heap_bytes(capabilities) <= k_max_capabilities_bytes;
}

std::optional<std::string> text_param(const json& params, const char* name) {
  const auto found = params.find(name);
  return found != params.end() && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

ProtocolError missing_tasks_capability(const std::string& subject) {
  return {k_missing_capability,
          subject + " needs a client with the tasks capability",
          {{"requiredCapabilities", {{"extensions", {{k_tasks_extension, json::object()}}}}}}};
}

bool Peer::follows_tasks() const {
  if (!is_stateless(revision)) {
    return revision == Revision::v2025_11_25;
  }
  const auto extensions = capabilities.find("extensions");
  return extensions != capabilities.end() && extensions->is_object() && extensions->contains(k_tasks_extension);
}

tl::expected<Peer, ProtocolError> stateless_peer(const json& params, const json& version) {
  if (!version.is_string()) {
    return invalid(fmt::format("_meta['{}'] must be a string", k_meta_version));
  }
  if (version != name_of(Revision::v2026_07_28)) {
    return tl::unexpected<ProtocolError>({k_unsupported_version,
                                          "Unsupported protocol version",
                                          {{"supported", {name_of(Revision::v2026_07_28)}}, {"requested", version}}});
  }
  const json capabilities = meta_field(params, k_meta_capabilities);
  if (!usable_capabilities(capabilities)) {
    return invalid(fmt::format("_meta['{}'] is required: an object of at most {} KiB", k_meta_capabilities,
                               k_max_capabilities_bytes / 1024));
  }
  Peer peer{Revision::v2026_07_28, capabilities, {}, name_of_client(meta_field(params, k_meta_client_info))};
  if (const json level = meta_field(params, k_meta_log_level); level.is_string()) {
    peer.log_from = log_severity(level.get<std::string>());
  }
  return peer;
}

}  // namespace dockbridge::mcp
