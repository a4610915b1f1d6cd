#include "sandbox/outgoing_queue.hpp"

#include <doctest/doctest.h>

using dockbridge::sandbox::OutgoingQueue;

TEST_CASE("outgoing queue: small frames are written together, a long one alone") {
  const std::string longer(20'000, 'x');
  OutgoingQueue queue;
  queue.push(1, "a");
  queue.push(2, "b");
  queue.push(3, longer);
  std::string writing;
  queue.move_to(writing, 0);
  CHECK(writing == "ab");
  CHECK(queue.bytes() == longer.size());
  writing.clear();
  queue.push(4, "c");
  queue.move_to(writing, 0);
  CHECK(writing == longer);
  queue.move_to(writing, 1);
  CHECK(writing == longer);
}

TEST_CASE("outgoing queue: a cancellation joins a frame that is partly written") {
  OutgoingQueue queue;
  queue.push(1, "first");
  std::string writing;
  queue.move_to(writing, 0);
  queue.push(2, "second");
  queue.push_cancellation(3, "cancel");
  queue.move_to(writing, 2);
  CHECK(writing == "firstcancel");
  CHECK(queue.bytes() == 6);
}

TEST_CASE("outgoing queue: only an unsent frame can be removed") {
  OutgoingQueue queue;
  queue.push(1, "first");
  std::string writing;
  queue.move_to(writing, 0);
  queue.push(2, "second");
  CHECK_FALSE(queue.remove(1));
  CHECK(queue.remove(2));
  CHECK_FALSE(queue.remove(2));
  CHECK(queue.empty());
  CHECK(queue.bytes() == 0);
}
