#include "sandbox/agent_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "sandbox/agent_image.hpp"

namespace dockbridge::sandbox {

namespace {

/// Another server may be placing the agent's file at the moment it is placed or started here.
constexpr int k_max_attempts = 6;
constexpr milliseconds k_pause_after_failed_place{100};

/// Another place is tried only if the program did not start. The error of an agent that started is final.
bool may_be_missing(const Error& error) {
  return error.code == ErrorCode::agent_failed || error.code == ErrorCode::exec_failed;
}

tl::unexpected<Error> not_placed(std::string reason) {
  return fail(ErrorCode::agent_not_placed, std::move(reason));
}

}  // namespace

struct AgentLauncher::Place {
  std::string base;   ///< exists in the container
  std::string agent;  ///< the agent's folder below it; ends with '/' unless it is empty
  std::string state;  ///< folder below it to make for state directories, which every user may use; empty: none

  [[nodiscard]] std::string path() const {
    return (std::filesystem::path(base) / (agent + agent_file_name())).lexically_normal().string();
  }
  [[nodiscard]] std::vector<PlacedFile> files() const {
    std::vector<PlacedFile> files;
    if (!agent.empty()) {
      files.push_back({agent, 0755});
    }
    files.push_back({agent + agent_file_name(), 0755, agent_image()});
    if (!state.empty()) {
      files.push_back({state, 01777});
    }
    return files;
  }
};

std::vector<AgentLauncher::Place> AgentLauncher::places() const {
  // The first is directly below "/" and sorts early, so one archive of "/" begins with all files to be examined.
  return {Place{"/", ".dockbridge/", "var/lib/dockbridge/state/"}, Place{"/var/lib/dockbridge", "", "state/"},
          Place{m_workdir, ".dockbridge-agent/", ""}};
}

std::optional<AgentLauncher::Trusted> AgentLauncher::recall(const ContainerRun& run) const {
  if (m_trusted && m_trusted->run == run) {
    return m_trusted;
  }
  const auto path = m_trusted_runs.find(run, agent_file_name());
  const auto all = places();
  const bool is_known =
      path && std::any_of(all.begin(), all.end(), [&](const Place& place) { return place.path() == *path; });
  return is_known ? std::optional(Trusted{run, *path}) : std::nullopt;
}

Result<std::unique_ptr<Connection>> AgentLauncher::launch(const ContainerRun& run, Deadline deadline) {
  m_trusted = recall(run);
  if (m_trusted) {
    auto connection = start(m_trusted->path, run, deadline);
    if (connection || !may_be_missing(connection.error())) {
      return connection;
    }
  }
  m_trusted.reset();
  std::string failures;
  for (const Place& place : places()) {
    auto connection = launch_at(place, run, deadline);
    if (connection || connection.error().code != ErrorCode::agent_not_placed) {
      return connection;
    }
    failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", place.path(), connection.error().message);
  }
  return fail(ErrorCode::agent_not_placed,
              fmt::format("Cannot start the agent in container {}: {}", m_channel.container_name(), failures),
              "A container with a read-only root file system needs a volume that belongs to root and allows execution: "
              "create it with --volume /var/lib/dockbridge");
}

Result<std::unique_ptr<Connection>> AgentLauncher::launch_at(const Place& place, const ContainerRun& run,
                                                             Deadline deadline) {
  const std::string path = place.path();
  std::string reason;
  bool is_placed = false;
  for (int attempt = 0; attempt < k_max_attempts; ++attempt) {
    const auto trust = m_channel.examine(run, path, agent_image(), deadline);
    if (!trust) {
      return trust.error().code == ErrorCode::engine_error ? not_placed(trust.error().message) : fail(trust.error());
    }
    // Without owners, only an agent that this server has placed is started, and only in a folder that is created with
    // it, which then belongs to root. A user who owns "/" controls the whole container anyway.
    const bool lacks_owners = trust->verdict == Trust::Verdict::unattributed;
    if (trust->verdict == Trust::Verdict::unsafe || (lacks_owners && place.base != "/")) {
      return not_placed(trust->reason);
    }
    if (trust->verdict == Trust::Verdict::replaceable || (lacks_owners && !is_placed)) {
      reason = trust->reason;
      if (auto placed = m_channel.place(run, place.base, place.files(), deadline); !placed) {
        reason = placed.error().message;
        if (placed.error().code != ErrorCode::engine_error) {
          return not_placed(reason);
        }
        std::this_thread::sleep_for(k_pause_after_failed_place);
        continue;
      }
      is_placed = true;
      if (!lacks_owners) {
        continue;
      }
    }
    auto connection = start(path, run, deadline);
    if (connection || !may_be_missing(connection.error())) {
      if (connection) {
        m_trusted = Trusted{run, path};
        m_trusted_runs.add(run, path);
      }
      return connection;
    }
    reason = connection.error().message;
  }
  return not_placed(reason);
}

Result<std::unique_ptr<Connection>> AgentLauncher::start(const std::string& path, const ContainerRun& run,
                                                         Deadline deadline) {
  auto stream = m_channel.open(run,
                               {path, "session", std::to_string(m_retention.age.count()),
                                std::to_string(m_retention.count), std::to_string(m_retention.bytes)},
                               deadline);
  if (!stream) {
    return fail(stream.error());
  }
  return Connection::open(std::move(*stream), deadline, run.shared);
}

}  // namespace dockbridge::sandbox
