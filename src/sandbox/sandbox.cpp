#include "sandbox/sandbox.hpp"

namespace dockbridge::sandbox {

namespace {

constexpr milliseconds k_ping_patience{5'000};

}  // namespace

Sandbox::Sandbox(Channel& channel, Settings settings, Log& log)
    : m_settings(std::move(settings)),
      m_link(channel,
             {channel, m_settings.workdir, m_settings.retention, TrustedRuns(m_settings.trusted_runs_directory)}, log),
      m_files(m_link, m_settings.workdir, m_settings.file_root),
      m_processes(m_link, log),
      m_control(m_link) {}

Result<Hello> Sandbox::hello(const std::stop_token& stop) {
  const auto current = m_link.session(stop);
  return current ? Result<Hello>(current->connection->hello()) : fail(current.error());
}

Result<std::vector<std::string>> Sandbox::writable_mounts(const std::stop_token& stop) {
  const auto current = m_link.session(stop);
  return current ? Result<std::vector<std::string>>(current->run.writable_mounts) : fail(current.error());
}

std::optional<Hello> Sandbox::present_hello() {
  const auto current = m_link.live_session();
  return current ? std::optional(current->connection->hello()) : std::nullopt;
}

std::uint64_t Sandbox::connection_number() {
  const auto current = m_link.present_session();
  return current ? current->number : 0;
}

Result<Clock::duration> Sandbox::round_trip() {
  const auto began = Clock::now();
  const auto pong = m_link.ask(wire::to_json(wire::PingRequest{}), {}, k_ping_patience, {}, Connect::never);
  return pong ? Result<Clock::duration>(Clock::now() - began) : fail(pong.error());
}

}  // namespace dockbridge::sandbox
