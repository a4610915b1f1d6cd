#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bridge.hpp"
#include "cli/commands.hpp"
#include "cli/host_paths.hpp"

namespace dockbridge::cli {

namespace {

using nlohmann::json;

constexpr milliseconds k_patience{10'000};

enum class Finding { good, hint, bad };

void print(Finding finding, const std::string& what, const std::string& next_step = {}) {
  const char* mark = finding == Finding::good ? "ok  " : finding == Finding::hint ? "hint" : "BAD ";
  fmt::print("{}  {}\n", mark, what);
  if (!next_step.empty()) {
    fmt::print("      {}\n", next_step);
  }
}

int give_up(const std::string& what, const Error& error) {
  print(Finding::bad, what + ": " + error.message, std::string(error.step()));
  return 1;
}

bool lists(const json& host, const char* key, const std::string& wanted) {
  const auto list = host.find(key);
  return list != host.end() && list->is_array() && std::any_of(list->begin(), list->end(), [&](const json& entry) {
           return entry.is_string() && entry.get<std::string>().starts_with(wanted);
         });
}

/// Warnings about the setup. None of them prevents a tool from working.
void look_at_hardening(const json& container) {
  const json host = container.value("HostConfig", json::object());
  const auto check = [](bool good, const char* yes, const char* no, const char* next_step) {
    print(good ? Finding::good : Finding::hint, good ? yes : no, good ? "" : next_step);
  };
  const auto flag = [&](const char* key) { return host.contains(key) && host.at(key).is_boolean() && host.at(key); };
  const auto limited = [&](const char* key) {
    return host.contains(key) && host.at(key).is_number_integer() && host.at(key).get<std::int64_t>() > 0;
  };
  check(!flag("Privileged"), "not privileged", "the container is privileged", "Run it without --privileged");
  check(flag("Init"), "has an init process", "no init process: orphans stay as zombies", "Create it with --init");
  check(lists(host, "SecurityOpt", "no-new-privileges"), "no new privileges", "programs in it can gain privileges",
        "Create it with --security-opt no-new-privileges:true");
  check(limited("PidsLimit"), "process limit set", "no process limit", "Create it with --pids-limit 4096");
  check(limited("Memory"), "memory limit set", "no memory limit", "Create it with --memory 4g");
  const json mounts = container.value("Mounts", json::array());
  const bool socket_inside = std::any_of(mounts.begin(), mounts.end(), [](const json& mount) {
    return mount.value("Source", "").find("docker.sock") != std::string::npos;
  });
  check(!socket_inside, "no Docker socket inside",
        "the Docker socket is mounted inside: a process in the container can control the host",
        "Create it without that mount");
}

}  // namespace

int doctor(const Options& options, Log& log) {
  fmt::print("dockbridge {}\n", DOCKBRIDGE_VERSION);
  Bridge bridge(options, log);
  docker::Engine& engine = bridge.engine();

  const auto version = engine.version(Deadline::after(k_patience));
  if (!version) {
    return give_up("engine", version.error());
  }
  print(Finding::good, fmt::format("{}, version {}", engine.description(), *version));

  // Connects as a tool call does. This starts or creates the container if that is allowed.
  const auto hello = bridge.sandbox().hello();
  if (!hello) {
    return give_up(fmt::format("container '{}'", options.container.name), hello.error());
  }
  print(Finding::good, fmt::format("container '{}' runs", options.container.name));
  print(Finding::good, fmt::format("agent {} ({}, uid {}) answers; state directory: {}", hello->version, hello->machine,
                                   hello->uid, hello->state_directory));
  print(hello->detour ? Finding::hint : Finding::good,
        hello->detour ? fmt::format("calls pass through the engine, which costs some 0.2 ms each: {}", *hello->detour)
                      : "calls use the direct line to the agent");
  print(hello->shell.empty() ? Finding::hint : Finding::good,
        hello->shell.empty() ? "no shell in the image: only plain programs can be run" : "shell: " + hello->shell);
  const auto container = engine.inspect(options.container.name, Deadline::after(k_patience));
  if (!container) {
    return give_up("container", container.error());
  }
  look_at_hardening(*container);
  const auto mounts = bridge.sandbox().writable_mounts({});
  if (const auto safe = mounts ? expect_own_files_outside(options, *mounts) : fail(mounts.error()); !safe) {
    print(Finding::bad, safe.error().message, std::string(safe.error().step()));
  }
  return 0;
}

}  // namespace dockbridge::cli
