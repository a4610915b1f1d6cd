#include "agent/keeper/warm_child.hpp"

#include "agent/keeper/child.hpp"

namespace dockbridge::agent {

Result<WarmChild> start_warm_child(ChildSpec spec, Streams pipes) {
  auto side = open_side_socket();
  if (!side) {
    return fail(side.error());
  }
  spec.stdin_fd = pipes.child_in.get();
  spec.stdout_fd = pipes.child_out.get();
  spec.stderr_fd = pipes.child_err.get();
  spec.side_fd = side->command.get();
  const auto pid = start_child(spec);
  if (!pid) {
    return fail(pid.error());
  }
  pipes.child_in.reset();
  pipes.child_out.reset();
  pipes.child_err.reset();
  return WarmChild{*pid, std::move(pipes), std::move(*side)};
}

}  // namespace dockbridge::agent
