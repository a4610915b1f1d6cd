#include "docker/api_engine.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "util/text.hpp"

namespace dockbridge::docker {

namespace {

using nlohmann::json;

/// The error message of the engine.
std::string message_of(const HttpResponse& response) {
  const json body = json::parse(response.body, nullptr, false);
  const bool has_message = body.is_object() && body.contains("message") && body.at("message").is_string();
  return printable_line(has_message ? body.at("message").get<std::string>() : response.body, 500);
}

Error refusal(const std::string& what, const HttpResponse& response) {
  return {ErrorCode::engine_error, fmt::format("{}: {} (HTTP {})", what, message_of(response), response.status)};
}

Result<json> parse_object(const HttpResponse& response) {
  json body = json::parse(response.body, nullptr, false);
  return body.is_object() ? Result<json>(std::move(body))
                          : fail(ErrorCode::engine_error, "The engine's reply is not JSON");
}

std::string archive_of(const std::string& container, const std::string& path) {
  return fmt::format("/containers/{}/archive?path={}", percent_encoded(container), percent_encoded(path));
}

}  // namespace

std::string ApiEngine::description() const {
  const MutexLock lock(m_mutex);
  return m_address ? fmt::format("engine at {} ({})", m_address->url, m_address->source) : "engine";
}

Result<Http> ApiEngine::http() {
  const MutexLock lock(m_mutex);
  if (!m_address) {
    auto found = m_find();
    if (!found) {
      return fail(found.error());
    }
    m_address = std::move(*found);
  }
  return Http(*m_address);
}

Result<HttpResponse> ApiEngine::get(const std::string& path, Deadline deadline) {
  const auto client = http();
  return client ? client->request("GET", path, {}, {}, deadline) : fail(client.error());
}

Result<HttpResponse> ApiEngine::post(const std::string& path, const json& body, Deadline deadline) {
  const auto client = http();
  const std::string text = body.is_null() ? "" : body.dump();
  return client ? client->request("POST", path, text, "application/json", deadline) : fail(client.error());
}

Result<std::string> ApiEngine::version(Deadline deadline) {
  const auto response = get("/version", deadline);
  const auto body = response ? parse_object(*response) : fail(response.error());
  return body ? Result<std::string>(body->value("Version", "unknown")) : fail(body.error());
}

Result<json> ApiEngine::inspect(const std::string& container, Deadline deadline) {
  const auto response = get("/containers/" + percent_encoded(container) + "/json", deadline);
  if (!response) {
    return fail(response.error());
  }
  if (response->status == 404) {
    return fail(ErrorCode::no_such_container, fmt::format("Container not found: {}", container));
  }
  return response->status == 200 ? parse_object(*response) : fail(refusal("Cannot inspect the container", *response));
}

Result<bool> ApiEngine::has_image(const std::string& image, Deadline deadline) {
  const auto response = get("/images/" + percent_encoded(image) + "/json", deadline);
  if (!response) {
    return fail(response.error());
  }
  return response->status == 200;
}

Result<void> ApiEngine::create(const ContainerSpec& spec, Deadline deadline) {
  json host = {{"Init", true},
               {"CapDrop", {"ALL"}},
               {"CapAdd", spec.capabilities},
               {"SecurityOpt", {"no-new-privileges:true"}},
               {"PidsLimit", spec.pids_limit},
               {"Memory", spec.memory_bytes}};
  if (!spec.workspace.empty()) {
    host["Mounts"] = json::array({{{"Type", "bind"}, {"Source", spec.workspace}, {"Target", spec.workdir}}});
  }
  const json body = {{"Image", spec.image},
                     {"Cmd", {"sleep", "infinity"}},
                     {"WorkingDir", spec.workdir},
                     {"Labels", {{"dockbridge.created", "true"}}},
                     {"HostConfig", host}};
  const auto response = post("/containers/create?name=" + percent_encoded(spec.name), body, deadline);
  if (!response) {
    return fail(response.error());
  }
  // Podman replies with 500, and reserves the name before the container can be looked up.
  const bool is_taken = message_of(*response).find("already in use") != std::string::npos;
  if (response->status == 409 || (response->status == 500 && is_taken)) {
    return fail(ErrorCode::name_in_use, message_of(*response));
  }
  return response->status == 201 ? Result<void>() : fail(refusal("Cannot create the container", *response));
}

Result<void> ApiEngine::start(const std::string& container, Deadline deadline) {
  const auto response = post("/containers/" + percent_encoded(container) + "/start", nullptr, deadline);
  if (!response) {
    return fail(response.error());
  }
  const bool good = response->status == 204 || response->status == 304;
  return good ? Result<void>() : fail(refusal("Cannot start the container", *response));
}

Result<void> ApiEngine::put_archive(const std::string& container, const std::string& directory, const std::string& tar,
                                    Deadline deadline) {
  const auto client = http();
  if (!client) {
    return fail(client.error());
  }
  const auto response = client->request("PUT", archive_of(container, directory), tar, "application/x-tar", deadline);
  if (!response) {
    return fail(response.error());
  }
  if (response->status == 200) {
    return {};
  }
  Error error = refusal("Cannot copy a file to the container", *response);
  if (response->status == 403 || response->status == 404) {
    error.code = response->status == 403 ? ErrorCode::read_only : ErrorCode::no_such_file;
  }
  return fail(std::move(error));
}

Result<bool> ApiEngine::is_known_absent(const std::string& container, const std::string& path, Deadline deadline) {
  const auto client = http();
  const auto response =
      client ? client->request("HEAD", archive_of(container, path), {}, {}, deadline) : fail(client.error());
  if (!response) {
    return fail(response.error());
  }
  if (response->status != 200 && response->status != 404) {
    return fail(ErrorCode::engine_error,
                fmt::format("Cannot look up {} in the container (HTTP {})", path, response->status));
  }
  return response->status == 404;
}

Result<void> ApiEngine::get_archive(const std::string& container, const std::string& path,
                                    const std::function<bool(std::string_view bytes)>& receive, Deadline deadline) {
  const auto client = http();
  const auto response =
      client ? client->download(archive_of(container, path), receive, deadline) : fail(client.error());
  if (!response) {
    return fail(response.error());
  }
  if (response->status == 404) {
    return fail(ErrorCode::no_such_file, fmt::format("No such file or directory in the container: {}", path));
  }
  return response->status == 200 ? Result<void>() : fail(refusal("Cannot read a file of the container", *response));
}

Result<std::unique_ptr<sandbox::ByteStream>> ApiEngine::exec(const std::string& container,
                                                             const std::vector<std::string>& argv, Deadline deadline) {
  const auto created = post("/containers/" + percent_encoded(container) + "/exec",
                            {{"Cmd", argv},
                             {"WorkingDir", "/"},
                             {"AttachStdin", true},
                             {"AttachStdout", true},
                             {"AttachStderr", true},
                             {"Tty", false}},
                            deadline);
  if (!created) {
    return fail(created.error());
  }
  const auto body = created->status == 201 ? parse_object(*created) : fail(refusal("Cannot start the agent", *created));
  if (!body) {
    return fail(body.error());
  }
  const auto client = http();
  if (!client) {
    return fail(client.error());
  }
  return client->upgrade("/exec/" + percent_encoded(body->value("Id", "")) + "/start",
                         R"({"Detach":false,"Tty":false})", deadline);
}

}  // namespace dockbridge::docker
