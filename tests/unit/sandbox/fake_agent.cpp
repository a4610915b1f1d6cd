#include "unit/sandbox/fake_agent.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace dockbridge::test {

namespace {

/// The host's end: a socket that never blocks.
class SocketStream : public sandbox::ByteStream {
 public:
  SocketStream(Fd socket, std::string complaint) : m_socket(std::move(socket)), m_complaint(std::move(complaint)) {}

  [[nodiscard]] int read_fd() const override { return m_socket.get(); }
  [[nodiscard]] int write_fd() const override { return m_socket.get(); }
  [[nodiscard]] std::string stderr_text() override { return m_complaint; }

  Result<std::size_t> read(std::span<char> buffer) override {
    const ssize_t got = ::recv(m_socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    return got == 0 ? fail(ErrorCode::stream_ended, "the stream ended") : taken(got);
  }
  Result<std::size_t> write(std::string_view bytes) override {
    return taken(::send(m_socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }

 private:
  static Result<std::size_t> taken(ssize_t count) {
    if (count >= 0) {
      return static_cast<std::size_t>(count);
    }
    if (errno == EAGAIN || errno == EINTR) {
      return 0;
    }
    return fail(ErrorCode::stream_ended, "the stream broke");
  }

  Fd m_socket;
  std::string m_complaint;
};

}  // namespace

std::string frame_prefix(std::uint32_t head_bytes, std::uint32_t body_bytes) {
  std::string bytes;
  for (const std::uint32_t length : {head_bytes, body_bytes}) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>((length >> shift) & 0xFFU));
    }
  }
  return bytes;
}

std::string raw_frame(const std::string& head) {
  return frame_prefix(static_cast<std::uint32_t>(head.size()), 0) + head;
}

std::string nested(int levels) {
  std::string text = "1";
  for (int i = 0; i < levels; ++i) {
    text = "{\"a\":" + text + "}";
  }
  return text;
}

std::string greeting(const json& head) {
  return std::string(wire::k_magic) + wire::encode(head);
}

json hello_head() {
  return {{"hello",
           {{"protocol", 1},
            {"version", "1.2.3"},
            {"machine", "x86_64"},
            {"uid", 1000},
            {"pid", 17},
            {"shell", "/bin/bash"},
            {"home", "/root"},
            {"state", "/var/lib/dockbridge/state/1000"}}}};
}

json state_of(const std::string& process) {
  wire::ProcessState state;
  state.id = process;
  state.stdin_open = true;
  state.pid = 4711;
  state.started_at_ms = 1'700'000'000'000;
  state.command = "make";
  state.cwd = "/app";
  state.owner = "local";
  return wire::to_json(state);
}

bool FakeAgent::say(std::string_view bytes) const {
  while (m_socket && !bytes.empty()) {
    const ssize_t sent = ::send(m_socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return bytes.empty();
}

std::optional<wire::Frame> FakeAgent::next_request() {
  const auto deadline = Deadline::after(k_patience);
  while (m_socket) {
    auto frame = m_reader.next();
    if (!frame) {
      return std::nullopt;
    }
    if (*frame && (*frame)->head.value("op", "") == "ping") {
      answer(**frame);
      continue;
    }
    if (*frame) {
      return std::move(**frame);
    }
    pollfd polled{m_socket.get(), POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(deadline.remaining().count())) <= 0) {
      return std::nullopt;
    }
    std::array<char, 64 * 1024> buffer;
    const ssize_t got = ::recv(m_socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      return std::nullopt;
    }
    m_reader.feed({buffer.data(), static_cast<std::size_t>(got)});
  }
  return std::nullopt;
}

void FakeAgent::answer(const wire::Frame& request, json head, std::string_view body) const {
  head["id"] = request.head.at("id");
  say(wire::encode(head, body));
}

void FakeAgent::refuse(const wire::Frame& request, const std::string& code) const {
  answer(request, {{"error", {{"code", code}, {"message", "it did not work"}, {"nextStep", ""}}}});
}

Streams make_streams(const std::string& complaint) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::runtime_error("socketpair failed");
  }
  return {std::make_unique<SocketStream>(Fd(ends[0]), complaint), FakeAgent(Fd(ends[1]))};
}

FakeContainer::FakeContainer(std::function<void(FakeAgent&, const wire::Frame&, int)> react)
    : m_react(std::move(react)) {}

FakeContainer::FakeContainer(const Reaction& react)
    : m_react([react](FakeAgent& agent, const wire::Frame& request, int) { react(agent, request); }) {}

FakeContainer::~FakeContainer() {
  for (std::thread& session : m_sessions) {
    session.join();
  }
}

Result<sandbox::ContainerRun> FakeContainer::prepare(Deadline) {
  std::unique_lock lock(m_mutex);
  const auto hook = m_before_prepare;
  lock.unlock();
  hook();
  lock.lock();
  ++m_prepared;
  return m_prepare_error ? Result<sandbox::ContainerRun>(fail(*m_prepare_error)) : m_run;
}

Result<sandbox::Condition> FakeContainer::condition(const sandbox::ContainerRun& run, Deadline) {
  const std::lock_guard lock(m_mutex);
  return run == m_run ? m_condition : sandbox::Condition::gone;
}

Result<std::unique_ptr<sandbox::ByteStream>> FakeContainer::open(const sandbox::ContainerRun&,
                                                                 const std::vector<std::string>& argv, Deadline) {
  std::unique_lock lock(m_mutex);
  const auto hook = m_before_open;
  lock.unlock();
  hook();
  lock.lock();
  m_started.push_back(argv.front());
  if (m_usable_bases && std::find(m_placed.begin(), m_placed.end(), argv.front()) == m_placed.end()) {
    return fail(ErrorCode::exec_failed, "no such file");
  }
  Streams streams = make_streams();
  m_sessions.emplace_back([this, agent = std::move(streams.agent), number = ++m_opened]() mutable {
    run_session(std::move(agent), number);
  });
  return std::move(streams.host);
}

Result<void> FakeContainer::place(const sandbox::ContainerRun&, const std::string& base,
                                  const std::vector<sandbox::PlacedFile>& files, Deadline) {
  const std::lock_guard lock(m_mutex);
  const auto& bases = m_usable_bases;
  if (bases && std::find(bases->begin(), bases->end(), base) == bases->end()) {
    return fail(ErrorCode::read_only, "read-only file system");
  }
  if (m_failing_places > 0) {
    --m_failing_places;
    return fail(ErrorCode::engine_error, "file exists");
  }
  for (const sandbox::PlacedFile& file : files) {
    if (!file.name.ends_with('/')) {
      m_placed.push_back((base == "/" ? "" : base) + "/" + file.name);
    }
  }
  return {};
}

Result<sandbox::Trust> FakeContainer::examine(const sandbox::ContainerRun&, const std::string& path, std::string_view,
                                              Deadline) {
  using Verdict = sandbox::Trust::Verdict;
  const std::lock_guard lock(m_mutex);
  ++m_examined;
  if (m_examine_error) {
    return fail(*m_examine_error);
  }
  if (std::any_of(m_unsafe.begin(), m_unsafe.end(), [&](const auto& prefix) { return path.starts_with(prefix); })) {
    return sandbox::Trust{Verdict::unsafe, "it belongs to uid 1000"};
  }
  const bool there = !m_usable_bases || std::find(m_placed.begin(), m_placed.end(), path) != m_placed.end();
  if (!there || m_placed.size() < m_foreign_until_placed) {
    return sandbox::Trust{Verdict::replaceable, there ? "not the agent" : "no such file"};
  }
  return sandbox::Trust{m_ownerless ? Verdict::unattributed : Verdict::trusted, ""};
}

void FakeContainer::set_run(sandbox::ContainerRun run) {
  const std::lock_guard lock(m_mutex);
  m_run = std::move(run);
}

void FakeContainer::set_failing_places(int times) {
  const std::lock_guard lock(m_mutex);
  m_failing_places = times;
}

void FakeContainer::set_condition(Result<sandbox::Condition> condition) {
  const std::lock_guard lock(m_mutex);
  m_condition = std::move(condition);
}

void FakeContainer::set_prepare_error(std::optional<Error> error) {
  const std::lock_guard lock(m_mutex);
  m_prepare_error = std::move(error);
}

void FakeContainer::set_before_prepare(std::function<void()> hook) {
  const std::lock_guard lock(m_mutex);
  m_before_prepare = std::move(hook);
}

void FakeContainer::set_before_open(std::function<void()> hook) {
  const std::lock_guard lock(m_mutex);
  m_before_open = std::move(hook);
}

void FakeContainer::set_usable_bases(std::vector<std::string> bases) {
  const std::lock_guard lock(m_mutex);
  m_usable_bases = std::move(bases);
}

void FakeContainer::set_unsafe(std::vector<std::string> prefixes) {
  const std::lock_guard lock(m_mutex);
  m_unsafe = std::move(prefixes);
}

void FakeContainer::set_examine_error(std::optional<Error> error) {
  const std::lock_guard lock(m_mutex);
  m_examine_error = std::move(error);
}

void FakeContainer::set_ownerless() {
  const std::lock_guard lock(m_mutex);
  m_ownerless = true;
}

void FakeContainer::set_foreign_until_placed(std::size_t times) {
  const std::lock_guard lock(m_mutex);
  m_foreign_until_placed = times;
}

int FakeContainer::examined() const {
  const std::lock_guard lock(m_mutex);
  return m_examined;
}

std::vector<std::string> FakeContainer::started() const {
  const std::lock_guard lock(m_mutex);
  return m_started;
}

void FakeContainer::set_greeting(std::string bytes) {
  const std::lock_guard lock(m_mutex);
  m_greeting = std::move(bytes);
}

int FakeContainer::prepared() const {
  const std::lock_guard lock(m_mutex);
  return m_prepared;
}

int FakeContainer::opened() const {
  const std::lock_guard lock(m_mutex);
  return m_opened;
}

std::vector<std::string> FakeContainer::placed() const {
  const std::lock_guard lock(m_mutex);
  return m_placed;
}

int FakeContainer::count(const std::string& op) const {
  return static_cast<int>(requests(op).size());
}

std::vector<wire::Frame> FakeContainer::requests(const std::string& op) const {
  const std::lock_guard lock(m_mutex);
  std::vector<wire::Frame> found;
  std::copy_if(m_requests.begin(), m_requests.end(), std::back_inserter(found),
               [&](const wire::Frame& request) { return request.head.at("op") == op; });
  return found;
}

void FakeContainer::run_session(FakeAgent agent, int number) {
  std::string first_words;
  {
    const std::lock_guard lock(m_mutex);
    first_words = m_greeting;
  }
  agent.say(first_words);
  while (auto request = agent.next_request()) {
    {
      const std::lock_guard lock(m_mutex);
      m_requests.push_back(*request);
    }
    m_react(agent, *request, number);
  }
}

}  // namespace dockbridge::test
