#include "mcp/call_registry.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using namespace dockbridge::mcp;

TEST_CASE("calls: an id is free once released, while the call still runs") {
  CallRegistry calls;
  const auto call = std::make_shared<Interruption>();
  calls.add(1, call);
  CHECK(calls.has_id(1));
  calls.release_id(1);
  CHECK(!calls.has_id(1));
  CHECK(!calls.is_idle());
  calls.remove(call);
  CHECK(calls.is_idle());
}

TEST_CASE("calls: a cancellation reaches only the unanswered call of its id") {
  CallRegistry calls;
  const auto first = std::make_shared<Interruption>();
  const auto second = std::make_shared<Interruption>();
  calls.add("a", first);
  calls.add("b", second);
  calls.interrupt("a", StopReason::timed_out);
  CHECK(first->reason() == StopReason::timed_out);
  CHECK(second->reason() == StopReason::none);
  calls.release_id("b");
  calls.interrupt("b", StopReason::cancelled);
  CHECK(second->reason() == StopReason::none);
  calls.interrupt_all(StopReason::detached);
  CHECK(second->reason() == StopReason::detached);
  CHECK(!calls.wait_until_idle(Deadline::at({})));
}
