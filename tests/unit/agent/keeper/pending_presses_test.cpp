#include "agent/keeper/pending_presses.hpp"

#include <doctest/doctest.h>

using dockbridge::agent::PendingPresses;

TEST_CASE("pending presses: text waits for the keys that were pressed before it") {
  PendingPresses presses;
  CHECK(presses.type("at once") == "at once");
  presses.add();
  CHECK(presses.type("one").empty());
  CHECK(presses.type(" two").empty());
  presses.add();
  CHECK(presses.type("three").empty());
  CHECK(presses.count() == 2);
  CHECK(presses.bytes() == 12);
  CHECK(presses.take_first() == "one two");
  CHECK(presses.take_first() == "three");
  CHECK(presses.take_first().empty());
  CHECK(presses.type("at once") == "at once");
}

TEST_CASE("pending presses: keys that will not be encoded release all text in order") {
  PendingPresses presses;
  presses.add();
  (void)presses.type("one ");
  presses.add();
  (void)presses.type("two");
  CHECK(presses.take_all() == "one two");
  CHECK(presses.count() == 0);
}
