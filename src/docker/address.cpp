#include "docker/address.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "util/file.hpp"

namespace dockbridge::docker {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t k_max_config_bytes = 1024 * 1024;

json read_json(const fs::path& path) {
  const auto text = read_file_at(AT_FDCWD, path.string(), k_max_config_bytes);
  return text ? json::parse(*text, nullptr, false) : json();
}

std::string string_at(const json& value, const json::json_pointer& where) {
  return value.is_object() && value.contains(where) && value.at(where).is_string() ? value.at(where).get<std::string>()
                                                                                   : "";
}

/// The name of the active context; empty for the default one.
std::string active_context(const AddressSources& sources, const fs::path& config_directory) {
  std::string name = sources.environment("DOCKER_CONTEXT").value_or("");
  if (name.empty()) {
    name = string_at(read_json(config_directory / "config.json"), "/currentContext"_json_pointer);
  }
  return name == "default" ? "" : name;
}

/// Refuses a TCP address if TLS is configured for it. TLS is not supported, and plain text would expose all traffic.
Result<Address> without_tls(Result<Address> address, const std::string& tls_source) {
  if (!address || address->kind != Address::Kind::tcp || tls_source.empty()) {
    return address;
  }
  return fail(ErrorCode::unsupported_docker_host,
              fmt::format("TLS is not supported for engine address '{}' ({})", address->url, tls_source),
              "Use --via exec, which leaves TLS to the docker command, or a unix:// socket, for example an ssh tunnel");
}

/// The variable that asks for TLS, as text for the error; empty if none does. Any non-empty value counts, as for the
/// docker command.
std::string tls_variable(const AddressSources& sources) {
  for (const char* name : {"DOCKER_TLS_VERIFY", "DOCKER_TLS", "DOCKER_CERT_PATH"}) {
    if (!sources.environment(name).value_or("").empty()) {
      return fmt::format("{} is set", name);
    }
  }
  return "";
}

/// A directory that cannot be read counts as non-empty.
bool has_entries(const fs::path& directory) {
  std::error_code error;
  const fs::directory_iterator entries(directory, error);
  return error ? error != std::errc::no_such_file_or_directory : entries != fs::directory_iterator();
}

Result<Address> address_of_context(const std::string& name, const fs::path& config_directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(config_directory / "contexts" / "meta", ignored)) {
    const json meta = read_json(entry.path() / "meta.json");
    if (string_at(meta, "/Name"_json_pointer) == name) {
      const std::string source = fmt::format("docker context '{}'", name);
      const auto skip_verify = "/Endpoints/docker/SkipTLSVerify"_json_pointer;
      const bool has_tls = has_entries(config_directory / "contexts" / "tls" / entry.path().filename() / "docker") ||
                           (meta.contains(skip_verify) && meta.at(skip_verify) != false);
      return without_tls(parse_address(string_at(meta, "/Endpoints/docker/Host"_json_pointer), source),
                         has_tls ? source + " has TLS settings" : "");
    }
  }
  return fail(ErrorCode::no_such_context, fmt::format("Docker context not found: '{}'", name));
}

std::vector<std::string> usual_sockets(const AddressSources& sources) {
  const std::string runtime = sources.environment("XDG_RUNTIME_DIR").value_or("");
  std::vector<std::string> paths = {"/var/run/docker.sock", "/run/docker.sock"};
  if (!runtime.empty()) {
    paths.push_back(runtime + "/docker.sock");
  }
  if (!sources.home.empty()) {
    for (const char* below :
         {"/.docker/run/docker.sock", "/.docker/desktop/docker.sock", "/.colima/default/docker.sock"}) {
      paths.push_back(sources.home + below);
    }
  }
  if (!runtime.empty()) {
    paths.push_back(runtime + "/podman/podman.sock");
  }
  paths.emplace_back("/run/podman/podman.sock");
  return paths;
}

}  // namespace

Result<Address> parse_address(const std::string& url, const std::string& source) {
  const std::size_t colon = url.find("://");
  const std::string scheme = url.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : url.substr(colon + 3);
  if (scheme == "unix" && rest.starts_with('/')) {
    return Address{Address::Kind::unix_socket, rest, "", url, source};
  }
  if ((scheme == "tcp" || scheme == "http") && !rest.empty()) {
    return Address{Address::Kind::tcp, "", rest, url, source};
  }
  if (scheme == "ssh" || scheme == "https" || scheme == "npipe" || scheme == "fd") {
    return fail(ErrorCode::unsupported_docker_host,
                fmt::format("Unsupported engine address '{}' (from {}): {}://", url, source, scheme));
  }
  return fail(ErrorCode::bad_docker_host, fmt::format("Not an engine address: '{}' (from {})", url, source));
}

Result<Address> find_engine(const AddressSources& sources) {
  const std::string tls = tls_variable(sources);
  if (!sources.option.empty()) {
    return without_tls(parse_address(sources.option, "--docker-host"), tls);
  }
  if (const auto variable = sources.environment("DOCKER_HOST"); variable && !variable->empty()) {
    return without_tls(parse_address(*variable, "DOCKER_HOST"), tls);
  }
  const std::string named = sources.environment("DOCKER_CONFIG").value_or("");
  const fs::path config_directory = named.empty() ? sources.home + "/.docker" : named;
  if (const std::string context = active_context(sources, config_directory); !context.empty()) {
    return without_tls(address_of_context(context, config_directory), tls);
  }
  std::string looked;
  for (const std::string& path : usual_sockets(sources)) {
    std::error_code ignored;
    if (fs::is_socket(path, ignored)) {
      return Address{Address::Kind::unix_socket, path, "", "unix://" + path, "found"};
    }
    looked += (looked.empty() ? "" : ", ") + path;
  }
  return fail(ErrorCode::no_engine, "No Docker engine found. Tried: " + looked);
}

}  // namespace dockbridge::docker
