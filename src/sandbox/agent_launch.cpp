#include "sandbox/agent_launch.hpp"

#include <fmt/format.h>

#include <array>

#include "sandbox/agent_image.hpp"

namespace dockbridge::sandbox {

namespace {

struct Place {
  std::string base;    ///< exists in the container
  std::string folder;  ///< made below it

  [[nodiscard]] std::string path() const { return (base == "/" ? "" : base) + "/" + folder + "/" + agent_file_name(); }
};

Result<std::unique_ptr<Connection>> start_at(Channel& channel, const ContainerRun& run, const Place& place,
                                             const wire::Retention& retention, Deadline deadline) {
  auto stream = channel.open(run,
                             {place.path(), "session", std::to_string(retention.age.count()),
                              std::to_string(retention.count), std::to_string(retention.bytes)},
                             deadline);
  if (!stream) {
    return fail(stream.error());
  }
  return Connection::open(std::move(*stream), deadline, run.shared);
}

/// Only a program that did not start is a reason to put it there; an agent that started and failed is an answer.
bool may_be_missing(const Error& error) {
  return error.code == "agent_failed" || error.code == "exec_failed";
}

}  // namespace

Result<std::unique_ptr<Connection>> launch_agent(Channel& channel, const ContainerRun& run, const std::string& workdir,
                                                 const wire::Retention& retention, Deadline deadline) {
  const std::array<Place, 3> places = {Place{"/", "var/lib/dockbridge"}, Place{"/tmp", ".dockbridge-agent"},
                                       Place{workdir, ".dockbridge-agent"}};
  std::string failures;
  const auto note = [&](const Place& place, const Error& error) {
    failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", place.path(), error.message);
  };
  for (const Place& place : places) {
    auto connection = start_at(channel, run, place, retention, deadline);
    if (connection || !may_be_missing(connection.error())) {
      return connection;
    }
    if (auto placed = channel.place(run, place.base, place.folder, {agent_image(), agent_file_name()}, deadline);
        !placed) {
      note(place, placed.error());
      continue;
    }
    connection = start_at(channel, run, place, retention, deadline);
    if (connection || !may_be_missing(connection.error())) {
      return connection;
    }
    note(place, connection.error());
  }
  return fail("agent_not_placed",
              fmt::format("the agent could not be started in container '{}': {}", channel.container_name(), failures),
              "A container with a read-only root file system needs a volume or bind mount at " + workdir +
                  " that allows execution");
}

}  // namespace dockbridge::sandbox
