#include "docker/docker_channel.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "docker/tar.hpp"

namespace dockbridge::docker {

namespace {

using nlohmann::json;
using sandbox::Condition;
using sandbox::ContainerRun;
using sandbox::SharedDirectory;

struct Found {
  ContainerRun run;
  Condition condition = Condition::stopped;
};

Result<Found> understand(const json& container) {
  try {
    const json& state = container.at("State");
    Found found{{container.at("Id").get<std::string>(), state.at("StartedAt").get<std::string>()}, Condition::stopped};
    if (state.value("Paused", false)) {
      found.condition = Condition::paused;
    } else if (state.value("Running", false)) {
      found.condition = Condition::running;
    }
    return found;
  } catch (const json::exception&) {
    return fail("engine_error", "the engine's description of the container cannot be understood");
  }
}

/// What is mounted at a directory of the container, as the engine's machine calls it.
std::optional<SharedDirectory> directory_mounted_at(const std::string& directory, const json& container) {
  // "/app/" is "/app"; the engine tells the shortest form.
  const std::string path = (std::filesystem::path(directory) / "").lexically_normal().parent_path().string();
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

}  // namespace

DockerChannel::DockerChannel(Engine& engine, ContainerPolicy policy, Log& log)
    : m_engine(engine), m_policy(std::move(policy)), m_log(log) {}

Result<json> DockerChannel::inspect_or_create(Deadline deadline) {
  auto container = m_engine.inspect(m_policy.name, deadline);
  if (container || container.error().code != "no_such_container") {
    return container;
  }
  const auto absent = [&](const std::string& next_step) {
    return fail("no_such_container", fmt::format("there is no container '{}'", m_policy.name), next_step);
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
  if (auto created = m_engine.create(spec, deadline); !created && created.error().code != "name_in_use") {
    return fail(created.error());
  }
  return m_engine.inspect(m_policy.name, deadline);
}

Result<ContainerRun> DockerChannel::prepare(Deadline deadline) {
  auto container = inspect_or_create(deadline);
  auto found = container ? understand(*container) : fail(container.error());
  if (!found) {
    return fail(found.error());
  }
  if (found->condition == Condition::stopped) {
    if (!m_policy.may_start) {
      return fail("container_stopped", fmt::format("container '{}' is not running", m_policy.name),
                  "docker start " + m_policy.name);
    }
    m_log.info("starting the container", {{"container", m_policy.name}});
    if (auto started = m_engine.start(found->run.id, deadline); !started) {
      return fail(started.error());
    }
    container = m_engine.inspect(found->run.id, deadline);
    found = container ? understand(*container) : fail(container.error());
    if (!found) {
      return fail(found.error());
    }
    if (found->condition == Condition::stopped) {
      return fail("container_stopped", fmt::format("container '{}' stopped right after it was started", m_policy.name),
                  "Look at `docker logs " + m_policy.name + "`; its command should be `sleep infinity`");
    }
  }
  if (found->condition == Condition::paused) {
    return fail("container_paused", fmt::format("container '{}' is paused", m_policy.name),
                "docker unpause " + m_policy.name);
  }
  if (m_policy.may_go_direct) {
    found->run.shared = directory_mounted_at(m_policy.workdir, *container);
  }
  return found->run;
}

Result<Condition> DockerChannel::condition(const ContainerRun& run, Deadline deadline) {
  const auto container = m_engine.inspect(m_policy.name, deadline);
  if (!container) {
    return container.error().code == "no_such_container" ? Result<Condition>(Condition::gone) : fail(container.error());
  }
  const auto found = understand(*container);
  if (!found) {
    return fail(found.error());
  }
  const bool replaced = found->run.id != run.id || (found->run != run && found->condition != Condition::stopped);
  return replaced ? Condition::gone : found->condition;
}

Result<std::unique_ptr<sandbox::ByteStream>> DockerChannel::open(const ContainerRun& run,
                                                                 const std::vector<std::string>& argv,
                                                                 Deadline deadline) {
  return m_engine.exec(run.id, argv, deadline);
}

Result<void> DockerChannel::place(const ContainerRun& run, const std::string& base, const std::string& folder,
                                  const sandbox::PlacedFile& file, Deadline deadline) {
  const std::string tar = make_tar(
      {{folder + "/", 0755, {}}, {folder + "/state/", 01777, {}}, {folder + "/" + file.name, 0755, file.content}});
  return m_engine.put_archive(run.id, base, tar, deadline);
}

}  // namespace dockbridge::docker
