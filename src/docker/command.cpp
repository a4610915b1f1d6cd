#include "docker/command.hpp"

#include <boost/version.hpp>
#if BOOST_VERSION >= 108800
#include <boost/process/v1/args.hpp>
#include <boost/process/v1/child.hpp>
#include <boost/process/v1/exe.hpp>
#include <boost/process/v1/io.hpp>
#include <boost/process/v1/pipe.hpp>
#include <boost/process/v1/search_path.hpp>
#else
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>
#include <boost/process/search_path.hpp>
#endif
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "util/fd.hpp"
#include "util/mutex.hpp"

namespace dockbridge::docker {

namespace {

#if BOOST_VERSION >= 108800
namespace bp = boost::process::v1;
#else
namespace bp = boost::process;
#endif

constexpr int k_reads_at_once = 16;
constexpr std::size_t k_max_output_bytes = 8 * 1024 * 1024;
constexpr std::size_t k_max_error_output_bytes = 4096;

/// A non-blocking copy of the descriptor of one end of a Boost pipe.
Fd own_end(int fd) {
  Fd own(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  ::fcntl(own.get(), F_SETFL, ::fcntl(own.get(), F_GETFL) | O_NONBLOCK);
  return own;
}

/// Held while a child is started. Boost's pipes are inherited by every program that is started while they are open. So
/// they are marked close-on-exec, and one child is started at a time. limit_handles of Boost 1.74 is no alternative: it
/// also closes the standard streams of the child.
Mutex g_start_mutex;

bp::pipe private_pipe() REQUIRES(g_start_mutex) {
  bp::pipe pipe;
  ::fcntl(pipe.native_source(), F_SETFD, FD_CLOEXEC);
  ::fcntl(pipe.native_sink(), F_SETFD, FD_CLOEXEC);
  return pipe;
}

/// A child with three pipes. Killed and reaped at the latest when it is destroyed.
class Child {
 public:
  static Result<Child> start(const std::vector<std::string>& argv) {
    try {
      const auto program =
          argv.front().find('/') == std::string::npos ? bp::search_path(argv.front()).string() : argv.front();
      if (program.empty()) {
        return fail(ErrorCode::no_docker_command, fmt::format("Program not found on PATH: {}", argv.front()));
      }
      const MutexLock lock(g_start_mutex);
      bp::pipe in = private_pipe();
      bp::pipe out = private_pipe();
      bp::pipe err = private_pipe();
      Child result;
      result.m_child = bp::child(bp::exe = program, bp::args = std::vector<std::string>(argv.begin() + 1, argv.end()),
                                 bp::std_in<in, bp::std_out> out, bp::std_err > err);
      result.m_in = own_end(in.native_sink());
      result.m_out = own_end(out.native_source());
      result.m_err = own_end(err.native_source());
      return result;
    } catch (const std::exception& error) {
      return fail(ErrorCode::no_docker_command, fmt::format("Cannot start {}: {}", argv.front(), error.what()));
    }
  }

  Child(Child&&) = default;
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (!m_child.valid()) {
      return;
    }
    std::error_code ignored;
    m_child.terminate(ignored);
    m_child.wait(ignored);
  }

  Fd& in() { return m_in; }
  Fd& out() { return m_out; }
  Fd& err() { return m_err; }
  int wait() {
    std::error_code ignored;
    m_child.wait(ignored);
    return m_child.exit_code();
  }

 private:
  Child() = default;
  bp::child m_child;
  Fd m_in;
  Fd m_out;
  Fd m_err;
};

/// Reads the available bytes, a limited number of times. Closes the descriptor at its end.
void drain(Fd& fd, std::string& into, std::size_t limit) {
  std::array<char, 16 * 1024> buffer;
  for (int round = 0; fd && round < k_reads_at_once; ++round) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got > 0) {
      into.append(buffer.data(), std::min(static_cast<std::size_t>(got), limit - std::min(limit, into.size())));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      fd.reset();
    } else {
      return;
    }
  }
}

class CommandStream : public sandbox::ByteStream {
 public:
  explicit CommandStream(Child child) : m_child(std::move(child)) {}

  [[nodiscard]] int read_fd() const override { return m_child.out().get(); }
  [[nodiscard]] int write_fd() const override { return m_child.in().get(); }
  [[nodiscard]] std::string stderr_text() override {
    drain(m_child.err(), m_stderr, k_max_error_output_bytes);
    return m_stderr;
  }

  Result<std::size_t> read(std::span<char> buffer) override {
    drain(m_child.err(), m_stderr, k_max_error_output_bytes);
    const ssize_t got = ::read(m_child.out().get(), buffer.data(), buffer.size());
    if (got > 0) {
      return static_cast<std::size_t>(got);
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return 0;
    }
    return fail(ErrorCode::stream_ended, "The stream ended");
  }

  Result<std::size_t> write(std::string_view bytes) override {
    const ssize_t taken = ::write(m_child.in().get(), bytes.data(), bytes.size());
    if (taken >= 0) {
      return static_cast<std::size_t>(taken);
    }
    if (errno == EAGAIN || errno == EINTR) {
      return 0;
    }
    return fail(ErrorCode::stream_ended, std::strerror(errno));
  }

 private:
  mutable Child m_child;
  std::string m_stderr;
};

}  // namespace

Result<CommandResult> run_command(const std::vector<std::string>& argv, const std::string& input, Deadline deadline) {
  auto child = Child::start(argv);
  if (!child) {
    return fail(child.error());
  }
  CommandResult result;
  std::string_view left = input;
  while (child->out() || child->err()) {
    if (child->in() && left.empty()) {
      child->in().reset();
    }
    std::array<pollfd, 3> polled = {pollfd{child->in().get(), POLLOUT, 0}, pollfd{child->out().get(), POLLIN, 0},
                                    pollfd{child->err().get(), POLLIN, 0}};
    if (deadline.passed()) {
      return fail(ErrorCode::engine_hung,
                  fmt::format("`{} {}` exceeded its time limit", argv[0], argv.size() > 1 ? argv[1] : ""));
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(deadline.remaining().count()));
    if (polled[0].revents != 0) {
      const ssize_t taken = ::write(child->in().get(), left.data(), left.size());
      if (taken > 0) {
        left.remove_prefix(static_cast<std::size_t>(taken));
      } else if (errno != EAGAIN && errno != EINTR) {
        child->in().reset();
      }
    }
    drain(child->out(), result.out, k_max_output_bytes);
    drain(child->err(), result.err, k_max_error_output_bytes);
  }
  result.exit_code = child->wait();
  return result;
}

Result<std::unique_ptr<sandbox::ByteStream>> open_command(const std::vector<std::string>& argv) {
  auto child = Child::start(argv);
  if (!child) {
    return fail(child.error());
  }
  return std::make_unique<CommandStream>(std::move(*child));
}

}  // namespace dockbridge::docker
