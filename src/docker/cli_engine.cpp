#include "docker/cli_engine.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "docker/command.hpp"
#include "util/text.hpp"

namespace dockbridge::docker {

namespace {

using nlohmann::json;

bool contains(std::string text, std::string_view word) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text.find(word) != std::string::npos;
}

/// The command line reports errors only as text. These phrases are the same in docker and podman.
Error error_of(const std::string& command, const std::string& what, const CommandResult& result) {
  const std::string said = printable_line(result.err, 500);
  if (contains(result.err, "permission denied")) {
    return {ErrorCode::no_permission, fmt::format("{}: {}", what, said)};
  }
  if (contains(result.err, "cannot connect") || contains(result.err, "is the docker daemon running")) {
    return {ErrorCode::no_engine, fmt::format("{}: {}", what, said)};
  }
  if (contains(result.err, "no such container") || contains(result.err, "no such object") ||
      contains(result.err, "no container with name")) {
    return {ErrorCode::no_such_container, fmt::format("{}: {}", what, said)};
  }
  if (contains(result.err, "could not find the file") || contains(result.err, "could not be found on container")) {
    return {ErrorCode::no_such_file, fmt::format("{}: {}", what, said)};
  }
  if (contains(result.err, "read-only")) {
    return {ErrorCode::read_only, fmt::format("{}: {}", what, said)};
  }
  if (contains(result.err, "already in use")) {
    return {ErrorCode::name_in_use, said};
  }
  return {ErrorCode::engine_error, fmt::format("{}: `{}` ended with {}: {}", what, command, result.exit_code, said)};
}

}  // namespace

std::string CliEngine::description() const {
  return fmt::format("the {} command{}", m_command, m_host.empty() ? "" : " at " + m_host);
}

std::vector<std::string> CliEngine::command_line(std::vector<std::string> arguments) const {
  std::vector<std::string> line = {m_command};
  if (!m_host.empty()) {
    line.insert(line.end(), {"--host", m_host});
  }
  line.insert(line.end(), std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  return line;
}

Result<std::string> CliEngine::run(const std::string& what, std::vector<std::string> arguments, Deadline deadline,
                                   const std::string& input) const {
  auto result = run_command(command_line(std::move(arguments)), input, deadline);
  if (!result) {
    return fail(result.error());
  }
  if (result->exit_code != 0) {
    return fail(error_of(m_command, what, *result));
  }
  return std::move(result->out);
}

Result<std::string> CliEngine::version(Deadline deadline) {
  auto out = run("asking for the version", {"version", "--format", "{{.Server.Version}}"}, deadline);
  if (out) {
    out->erase(out->find_last_not_of(" \n") + 1);
  }
  return out;
}

Result<json> CliEngine::inspect(const std::string& container, Deadline deadline) {
  const auto out =
      run("Cannot inspect the container", {"container", "inspect", "--format", "{{json .}}", container}, deadline);
  if (!out) {
    return fail(out.error());
  }
  json body = json::parse(*out, nullptr, false);
  if (body.is_array() && body.size() == 1) {
    body = json(std::move(body.front()));  // podman applies the format to the list
  }
  return body.is_object() ? Result<json>(std::move(body))
                          : fail(ErrorCode::engine_error, fmt::format("`{} inspect` did not print JSON", m_command));
}

Result<bool> CliEngine::has_image(const std::string& image, Deadline deadline) {
  const auto result = run_command(command_line({"image", "inspect", image}), {}, deadline);
  return result ? Result<bool>(result->exit_code == 0) : fail(result.error());
}

Result<void> CliEngine::create(const ContainerSpec& spec, Deadline deadline) {
  std::vector<std::string> arguments = {"create",         "--name",
                                        spec.name,        "--init",
                                        "--label",        "dockbridge.created=true",
                                        "--cap-drop",     "ALL",
                                        "--security-opt", "no-new-privileges:true",
                                        "--pids-limit",   std::to_string(spec.pids_limit),
                                        "--memory",       std::to_string(spec.memory_bytes),
                                        "--workdir",      spec.workdir};
  for (const std::string& capability : spec.capabilities) {
    arguments.insert(arguments.end(), {"--cap-add", capability});
  }
  if (!spec.workspace.empty()) {
    arguments.insert(arguments.end(),
                     {"--mount", fmt::format("type=bind,source={},target={}", spec.workspace, spec.workdir)});
  }
  arguments.insert(arguments.end(), {spec.image, "sleep", "infinity"});
  const auto out = run("Cannot create the container", std::move(arguments), deadline);
  return out ? Result<void>() : fail(out.error());
}

Result<void> CliEngine::start(const std::string& container, Deadline deadline) {
  const auto out = run("Cannot start the container", {"start", container}, deadline);
  return out ? Result<void>() : fail(out.error());
}

Result<void> CliEngine::put_archive(const std::string& container, const std::string& directory, const std::string& tar,
                                    Deadline deadline) {
  // Keeps the owners in the archive. Without the option, podman makes the container's user the owner.
  const auto out = run("Cannot copy a file to the container",
                       {"cp", "--archive=false", "-", container + ":" + directory}, deadline, tar);
  return out ? Result<void>() : fail(out.error());
}

Result<bool> CliEngine::is_known_absent(const std::string&, const std::string&, Deadline) {
  return false;  // `cp` creates the archive before it reports that a path is absent
}

Result<void> CliEngine::get_archive(const std::string& container, const std::string& path,
                                    const std::function<bool(std::string_view bytes)>& receive, Deadline deadline) {
  constexpr const char* k_what = "Cannot read a file of the container";
  const auto stream = open_command(command_line({"cp", container + ":" + path, "-"}));
  if (!stream) {
    return fail(stream.error());
  }
  std::vector<char> buffer(64 * 1024);
  bool received = false;
  while (!deadline.passed()) {
    const auto got = (*stream)->read(buffer);
    if (!got) {
      // The exit status is not available here; the command prints either an archive or the reason.
      return received ? Result<void>() : fail(error_of(m_command, k_what, {1, {}, (*stream)->stderr_text()}));
    }
    received = received || *got > 0;
    if (*got > 0 && !receive({buffer.data(), *got})) {
      return {};
    }
    if (*got == 0) {
      pollfd polled{(*stream)->read_fd(), POLLIN, 0};
      ::poll(&polled, 1, static_cast<int>(deadline.remaining().count()));
    }
  }
  return fail(ErrorCode::engine_hung, fmt::format("`{} cp` exceeded its time limit", m_command));
}

Result<std::unique_ptr<sandbox::ByteStream>> CliEngine::exec(const std::string& container,
                                                             const std::vector<std::string>& argv, Deadline) {
  std::vector<std::string> arguments = {"exec", "--interactive", "--workdir", "/", container};
  arguments.insert(arguments.end(), argv.begin(), argv.end());
  return open_command(command_line(std::move(arguments)));
}

}  // namespace dockbridge::docker
