#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sandbox/channel.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/frame.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::test {

using nlohmann::json;

/// Longer than any step of a test takes.
inline constexpr seconds k_patience{20};

/// The eight bytes before a frame's head.
std::string frame_prefix(std::uint32_t head_bytes, std::uint32_t body_bytes);
/// A frame whose head is any text, valid or not.
std::string raw_frame(const std::string& head);
/// The text of `levels` nested objects.
std::string nested(int levels);
/// The magic and the first frame of a session.
std::string greeting(const json& head);
/// A valid description of an agent.
json hello_head();
/// A process state as an agent sends it: running, without output.
json state_of(const std::string& process);

/// The container's end of a stream. It sends valid or invalid frames, as the test says. Used by one thread at a time.
class FakeAgent {
 public:
  explicit FakeAgent(Fd socket) : m_socket(std::move(socket)) {}

  /// Sends the bytes unchanged; false if the stream has ended.
  bool say(std::string_view bytes) const;
  void greet() const { say(greeting(hello_head())); }
  /// The next request; nullopt at the end of the stream. Answers pings meanwhile.
  std::optional<wire::Frame> next_request();
  void answer(const wire::Frame& request, json head = json::object(), std::string_view body = {}) const;
  void refuse(const wire::Frame& request, const std::string& code) const;
  void hang_up() { m_socket.reset(); }

 private:
  Fd m_socket;
  wire::FrameReader m_reader{wire::k_max_body_to_agent};
};

struct Streams {
  std::unique_ptr<sandbox::ByteStream> host;
  FakeAgent agent;
};
/// The two ends of one stream. `complaint` is the error output of the program.
Streams make_streams(const std::string& complaint = {});

/// A container with an agent in it that a test has scripted. Each session runs on a thread of its own, which
/// ends with its stream. So the sandbox must be destroyed first. Any thread may call.
class FakeContainer : public sandbox::Channel {
 public:
  using Reaction = std::function<void(FakeAgent& agent, const wire::Frame& request)>;

  /// A session calls `react` for each request; `session` counts from 1.
  explicit FakeContainer(std::function<void(FakeAgent& agent, const wire::Frame& request, int session)> react);
  explicit FakeContainer(const Reaction& react);
  ~FakeContainer() override;

  [[nodiscard]] std::string container_name() const override { return "box"; }
  Result<sandbox::ContainerRun> prepare(Deadline deadline) override;
  Result<sandbox::Condition> condition(const sandbox::ContainerRun& run, Deadline deadline) override;
  Result<std::unique_ptr<sandbox::ByteStream>> open(const sandbox::ContainerRun& run,
                                                    const std::vector<std::string>& argv, Deadline deadline) override;
  Result<void> place(const sandbox::ContainerRun& run, const std::string& base,
                     const std::vector<sandbox::PlacedFile>& files, Deadline deadline) override;
  Result<sandbox::Trust> examine(const sandbox::ContainerRun& run, const std::string& path, std::string_view content,
                                 Deadline deadline) override;

  void set_run(sandbox::ContainerRun run);
  void set_condition(Result<sandbox::Condition> condition);
  void set_prepare_error(std::optional<Error> error);
  /// Called by every `prepare` before it answers.
  void set_before_prepare(std::function<void()> hook);
  /// Called by every `open` before it answers.
  void set_before_open(std::function<void()> hook);
  /// Directories in which the agent can be placed and started; all by default. It is in none of them at first.
  void set_usable_bases(std::vector<std::string> bases);
  /// Prefixes of the paths at which another user can replace the agent.
  void set_unsafe(std::vector<std::string> prefixes);
  /// Every examination fails with this error.
  void set_examine_error(std::optional<Error> error);
  /// The engine does not report owners.
  void set_ownerless();
  /// Another file is at the agent's path until the agent has been placed this many times.
  void set_foreign_until_placed(std::size_t times);
  /// The next placements fail, as they do when several servers place the agent at once.
  void set_failing_places(int times);
  /// First bytes of a session, in place of a valid greeting.
  void set_greeting(std::string bytes);

  [[nodiscard]] int prepared() const;
  [[nodiscard]] int opened() const;
  /// Paths at which the agent was placed.
  [[nodiscard]] std::vector<std::string> placed() const;
  [[nodiscard]] int examined() const;
  /// The programs that were started.
  [[nodiscard]] std::vector<std::string> started() const;
  /// Number of requests with this operation, over all sessions.
  [[nodiscard]] int count(const std::string& op) const;
  [[nodiscard]] std::vector<wire::Frame> requests(const std::string& op) const;

 private:
  void run_session(FakeAgent agent, int number);

  std::function<void(FakeAgent& agent, const wire::Frame& request, int session)> m_react;
  mutable std::mutex m_mutex;  // guards everything below
  sandbox::ContainerRun m_run{"0123456789abcdef", "2026-01-01T00:00:00Z"};
  Result<sandbox::Condition> m_condition = sandbox::Condition::running;
  std::optional<Error> m_prepare_error;
  std::function<void()> m_before_prepare = [] {};
  std::function<void()> m_before_open = [] {};
  std::optional<std::vector<std::string>> m_usable_bases;
  std::vector<std::string> m_unsafe;
  std::optional<Error> m_examine_error;
  std::size_t m_foreign_until_placed = 0;
  bool m_ownerless = false;
  int m_failing_places = 0;
  std::vector<std::string> m_placed;
  std::vector<std::string> m_started;
  int m_examined = 0;
  std::string m_greeting = greeting(hello_head());
  int m_prepared = 0;
  int m_opened = 0;
  std::vector<wire::Frame> m_requests;
  std::vector<std::thread> m_sessions;
};

}  // namespace dockbridge::test
