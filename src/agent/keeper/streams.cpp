#include "agent/keeper/streams.hpp"

#include <fcntl.h>
#include <poll.h>

#include <array>

namespace dockbridge::agent {

namespace {

Error no_descriptors() {
  return {ErrorCode::cannot_start, "The container has no file descriptors left for a process"};
}

bool open_pipe(Fd& read_end, Fd& write_end) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return false;
  }
  read_end.reset(ends[0]);
  write_end.reset(ends[1]);
  return true;
}

Fd duplicate(int fd) {
  return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

Result<Streams> open_pipes() {
  Streams streams;
  if (!open_pipe(streams.out, streams.child_out) || !open_pipe(streams.err, streams.child_err) ||
      !open_pipe(streams.child_in, streams.in)) {
    return fail(no_descriptors());
  }
  for (const Fd* own : {&streams.in, &streams.out, &streams.err}) {
    ::fcntl(own->get(), F_SETFL, O_NONBLOCK);
  }
  return streams;
}

Result<Streams> open_on_terminal(const Terminal& terminal) {
  Streams streams;
  streams.child_in = duplicate(terminal.command_fd());
  streams.child_out = duplicate(terminal.command_fd());
  streams.child_err = duplicate(terminal.command_fd());
  streams.in = duplicate(terminal.fd());
  streams.out = duplicate(terminal.fd());
  if (!streams.child_in || !streams.child_out || !streams.child_err || !streams.in || !streams.out) {
    return fail(no_descriptors());
  }
  return streams;
}

bool is_readable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace dockbridge::agent
