#include "agent/keeper/streams.hpp"

#include <fcntl.h>

#include <array>

namespace dockbridge::agent {

namespace {

Error no_descriptors() {
  return {"cannot_start", "the container has no file descriptors left for another process"};
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

Result<Streams> open_on_terminal(const Terminal& terminal, Fd input_file) {
  Streams streams;
  streams.child_in = input_file ? std::move(input_file) : duplicate(terminal.command_fd());
  streams.child_out = duplicate(terminal.command_fd());
  streams.child_err = duplicate(terminal.command_fd());
  streams.in = duplicate(terminal.fd());
  streams.out = duplicate(terminal.fd());
  if (!streams.child_in || !streams.child_out || !streams.child_err || !streams.in || !streams.out) {
    return fail(no_descriptors());
  }
  return streams;
}

}  // namespace

Result<Streams> open_streams(const Terminal* terminal, Fd input_file) {
  if (terminal != nullptr) {
    return open_on_terminal(*terminal, std::move(input_file));
  }
  Streams streams;
  const bool has_input_file = static_cast<bool>(input_file);
  if (!open_pipe(streams.out, streams.child_out) || !open_pipe(streams.err, streams.child_err) ||
      (!has_input_file && !open_pipe(streams.child_in, streams.in))) {
    return fail(no_descriptors());
  }
  if (has_input_file) {
    streams.child_in = std::move(input_file);
  }
  return streams;
}

void Streams::unblock() const {
  for (const Fd* own : {&in, &out, &err}) {
    if (*own) {
      ::fcntl(own->get(), F_SETFL, ::fcntl(own->get(), F_GETFL) | O_NONBLOCK);
    }
  }
}

}  // namespace dockbridge::agent
