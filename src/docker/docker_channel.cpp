#include "docker/docker_channel.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "docker/file_trust.hpp"
#include "docker/tar.hpp"

namespace dockbridge::docker {

namespace {

using nlohmann::json;
using sandbox::Condition;
using sandbox::ContainerRun;
using sandbox::SharedDirectory;

/// Longest wait for a container that is being removed.
constexpr milliseconds k_max_removal{10'000};
constexpr milliseconds k_removal_poll{50};

struct Found {
  ContainerRun run;
  Condition condition = Condition::stopped;
  bool is_being_removed = false;
  bool is_dead = false;  ///< its removal failed; it cannot be started again
};

Result<Found> parse_container(const json& container) {
  try {
    const json& state = container.at("State");
    Found found{{container.at("Id").get<std::string>(), state.at("StartedAt").get<std::string>()}, Condition::stopped};
    if (state.value("Paused", false)) {
      found.condition = Condition::paused;
    } else if (state.value("Running", false)) {
      found.condition = Condition::running;
    }
    found.is_being_removed = state.value("Status", "") == "removing";
    found.is_dead = state.value("Dead", false);
    return found;
  } catch (const json::exception&) {
    return fail(ErrorCode::engine_error, "The engine's description of the container is malformed");
  }
}

/// "/app" for "/app/".
std::string shortest_form(const std::string& directory) {
  return (std::filesystem::path(directory) / "").lexically_normal().parent_path().string();
}

/// Host directories that the container can write to, with their paths on the engine's machine.
std::vector<std::string> writable_mounts_of(const json& container) {
  std::vector<std::string> sources;
  for (const json& mount : container.value("Mounts", json::array())) {
    const auto source = mount.is_object() ? mount.find("Source") : mount.end();
    if (source != mount.end() && source->is_string() && source->get_ref<const std::string&>().starts_with('/') &&
        !(mount.contains("RW") && mount.at("RW") == false)) {
      sources.push_back(source->get<std::string>());
    }
  }
  return sources;
}

/// The mount at a directory of the container, as a path on the engine's machine.
std::optional<SharedDirectory> directory_mounted_at(const std::string& directory, const json& container) {
  const std::string path = shortest_form(directory);  // the form in which the engine reports it
  try {
    for (const json& mount : container.value("Mounts", json::array())) {
      if (mount.at("Type") == "bind" && mount.at("Destination") == path) {
        return SharedDirectory{mount.at("Source").get<std::string>(), path};
      }
    }
  } catch (const json::exception&) {  // then none is known
  }
  return std::nullopt;
}

/// The uid that the engine runs programs as; nullopt if the container's own files define it.
std::optional<std::uint64_t> uid_of(const json& container) {
  const auto where = "/Config/User"_json_pointer;
  const json user = container.contains(where) ? container.at(where) : json("");
  const std::string text = user.is_string() ? user.get<std::string>() : "unknown";
  const std::string name = text.substr(0, text.find(':'));
  std::uint64_t uid = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), uid);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == name.data() + name.size();
  return is_number || name.empty() ? std::optional(uid) : std::nullopt;
}

/// Mount points whose file systems are not part of the engine's archives, such as a tmpfs.
std::vector<std::string> hidden_mounts(const json& container) {
  std::vector<std::string> hidden;
  try {
    for (const auto& [list, key] :
         {std::pair("/Mounts"_json_pointer, "Destination"), std::pair("/HostConfig/Mounts"_json_pointer, "Target")}) {
      for (const json& mount : container.value(list, json())) {
        if (mount.at("Type") != "bind" && mount.at("Type") != "volume") {
          hidden.push_back(shortest_form(mount.at(key).get<std::string>()));
        }
      }
    }
    const json tmpfs = container.value("/HostConfig/Tmpfs"_json_pointer, json());
    for (const auto& [destination, options] : tmpfs.items()) {
      hidden.push_back(shortest_form(destination));
    }
  } catch (const json::exception&) {
    return {"/"};  // the mounts are unknown
  }
  return hidden;
}

}  // namespace

DockerChannel::DockerChannel(Engine& engine, ContainerPolicy policy, Log& log)
    : m_engine(engine), m_policy(std::move(policy)), m_log(log) {}

Result<json> DockerChannel::inspect_or_create(Deadline deadline) {
  auto container = m_engine.inspect(m_policy.name, deadline);
  if (container || container.error().code != ErrorCode::no_such_container) {
    return container;
  }
  const auto absent = [&](const std::string& next_step) {
    return fail(ErrorCode::no_such_container, fmt::format("Container not found: {}", m_policy.name), next_step);
  };
  if (!m_policy.may_create) {
    return absent("Create it, for example with ./run.sh or `docker compose up -d`, or name another one with -c");
  }
  const auto image = m_engine.has_image(m_policy.image, deadline);
  if (!image) {
    return fail(image.error());
  }
  if (!*image) {
    return absent(
        fmt::format("The image '{}' does not exist either: build both with ./run.sh, or name an existing "
                    "container with -c or image with --image",
                    m_policy.image));
  }
  ContainerSpec spec;
  spec.name = m_policy.name;
  spec.image = m_policy.image;
  spec.workdir = m_policy.workdir;
  spec.workspace = m_policy.workspace;
  m_log.info("creating the container", {{"container", spec.name}, {"image", spec.image}});
  const auto created = m_engine.create(spec, deadline);
  // The engine may refuse because another server has created the container in the meantime. The error code may vary.
  container = m_engine.inspect(m_policy.name, deadline);
  return created || container ? container : fail(created.error());
}

Result<ContainerRun> DockerChannel::prepare(Deadline deadline) {
  const auto removal = deadline.capped(k_max_removal);
  for (;; std::this_thread::sleep_for(std::min(k_removal_poll, removal.remaining()))) {
    auto container = inspect_or_create(deadline);
    const auto found = container ? parse_container(*container) : fail(container.error());
    if (!found && found.error().code == ErrorCode::name_in_use && !removal.passed()) {
      continue;  // the name was in use, but free again at the lookup
    }
    if (!found) {
      return fail(found.error());
    }
    if (found->is_being_removed && !removal.passed()) {
      continue;
    }
    if (found->is_being_removed || found->is_dead) {
      return fail(ErrorCode::container_stopped, fmt::format("Container is marked for removal: {}", m_policy.name),
                  "docker rm --force " + m_policy.name + ", then call again");
    }
    if (found->condition == Condition::stopped) {
      if (auto started = start(found->run.id, deadline); !started) {
        if (is_no_longer_stopped(found->run.id, deadline) && !removal.passed()) {
          continue;
        }
        return fail(started.error());
      }
      container = m_engine.inspect(found->run.id, deadline);
    }
    return container ? run_of(*container) : fail(container.error());
  }
}

bool DockerChannel::is_no_longer_stopped(const std::string& id, Deadline deadline) {
  const auto container = m_engine.inspect(id, deadline);
  const auto found = container ? parse_container(*container) : fail(container.error());
  return found ? found->condition != Condition::stopped || found->is_being_removed || found->is_dead
               : found.error().code == ErrorCode::no_such_container;
}

Result<void> DockerChannel::start(const std::string& id, Deadline deadline) {
  if (!m_policy.may_start) {
    return fail(ErrorCode::container_stopped, fmt::format("Container is not running: {}", m_policy.name),
                "docker start " + m_policy.name);
  }
  m_log.info("starting the container", {{"container", m_policy.name}});
  return m_engine.start(id, deadline);
}

Result<ContainerRun> DockerChannel::run_of(const json& container) const {
  auto found = parse_container(container);
  if (!found) {
    return fail(found.error());
  }
  if (found->condition == Condition::stopped) {
    return fail(ErrorCode::container_stopped, fmt::format("Container stopped right after its start: {}", m_policy.name),
                "Look at `docker logs " + m_policy.name + "`; its command should be `sleep infinity`");
  }
  if (found->condition == Condition::paused) {
    return fail(ErrorCode::container_paused, fmt::format("Container is paused: {}", m_policy.name),
                "docker unpause " + m_policy.name);
  }
  found->run.writable_mounts = writable_mounts_of(container);
  if (m_policy.may_go_direct) {
    found->run.shared = directory_mounted_at(m_policy.workdir, container);
  }
  if (found->run.shared) {
    found->run.shared->writable_mounts = found->run.writable_mounts;
  }
  found->run.uid = uid_of(container);
  found->run.hidden = hidden_mounts(container);
  return found->run;
}

Result<Condition> DockerChannel::condition(const ContainerRun& run, Deadline deadline) {
  const auto container = m_engine.inspect(m_policy.name, deadline);
  if (!container) {
    return container.error().code == ErrorCode::no_such_container ? Result<Condition>(Condition::gone)
                                                                  : fail(container.error());
  }
  const auto found = parse_container(*container);
  if (!found) {
    return fail(found.error());
  }
  const bool replaced = found->is_being_removed || found->run.id != run.id ||
                        (found->run != run && found->condition != Condition::stopped);
  return replaced ? Condition::gone : found->condition;
}

Result<std::unique_ptr<sandbox::ByteStream>> DockerChannel::open(const ContainerRun& run,
                                                                 const std::vector<std::string>& argv,
                                                                 Deadline deadline) {
  return m_engine.exec(run.id, argv, deadline);
}

Result<void> DockerChannel::place(const ContainerRun& run, const std::string& base,
                                  const std::vector<sandbox::PlacedFile>& files, Deadline deadline) {
  std::vector<TarEntry> entries;
  for (const sandbox::PlacedFile& file : files) {
    if (!file.content.empty()) {
      entries.push_back(owner_probe(file.name));
    }
    entries.push_back({file.name, file.mode, file.content});
  }
  return m_engine.put_archive(run.id, base, make_tar(entries), deadline);
}

Result<sandbox::Trust> DockerChannel::examine(const ContainerRun& run, const std::string& path,
                                              std::string_view content, Deadline deadline) {
  return examine_file(m_engine, run, path, content, deadline);
}

}  // namespace dockbridge::docker
