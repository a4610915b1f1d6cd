#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // The servers under test leave no records in the home of whoever runs the tests, and examine every agent.
  ::setenv("XDG_STATE_HOME", "/dev/null", 1);
  return doctest::Context(argc, argv).run();
}
