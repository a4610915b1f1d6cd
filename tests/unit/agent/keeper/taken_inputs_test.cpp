#include "agent/keeper/taken_inputs.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dockbridge;
using agent::Before;
using agent::OnceHeader;
using agent::TakenInputs;

namespace {

OnceHeader step(char key, std::uint64_t at = 0, char call = 'c') {
  OnceHeader header;
  header.key.fill(key);
  header.call.fill(call);
  header.at = at;
  header.seen_out = 7;
  header.seen_err = 9;
  return header;
}

}  // namespace

TEST_CASE("what was taken under a key is not to be given again") {
  TakenInputs inputs;
  CHECK(inputs.find(step('a'), 4).before == Before::no);
  inputs.add(step('a'), 4);
  const auto again = inputs.find(step('a'), 4);
  CHECK(again.before == Before::yes);
  CHECK(again.units == 4);
  CHECK(inputs.find(step('b'), 4).before == Before::no);
}

TEST_CASE("input that comes in pieces goes on where it was broken off") {
  TakenInputs inputs;
  inputs.add(step('a'), 100);
  inputs.add(step('a', 100), 100);
  CHECK(inputs.find(step('a', 0), 100).units == 100);
  CHECK(inputs.find(step('a', 100), 100).before == Before::yes);
  CHECK(inputs.find(step('a', 200), 100).before == Before::no);
  CHECK(inputs.all().size() == 1);
}

TEST_CASE("of input that found too little room, no more is given than was said") {
  TakenInputs inputs;
  inputs.add(step('a'), 30);
  const auto again = inputs.find(step('a'), 100);
  CHECK(again.before == Before::yes);
  CHECK(again.units == 30);
}

TEST_CASE("input that was not taken at all may come again") {
  TakenInputs inputs;
  inputs.add(step('a'), 0);
  CHECK(inputs.find(step('a'), 4).before == Before::no);
  CHECK(inputs.all().empty());
}

TEST_CASE("who only asks is told how much was taken, and what the sender had seen") {
  TakenInputs inputs;
  CHECK(inputs.find(step('a'), 0).before == Before::no);
  inputs.add(step('a'), 5);
  auto later = step('a');
  later.seen_out = 100;
  CHECK(inputs.find(later, 0).before == Before::yes);
  const auto answer = inputs.answer(later, Before::yes);
  CHECK(answer.units == 5);
  CHECK(answer.seen_out == 7);
  CHECK(answer.seen_err == 9);
}

TEST_CASE("a key that was used for another call says so, and tells nothing of that") {
  TakenInputs inputs;
  inputs.add(step('a'), 5);
  CHECK(inputs.find(step('a', 0, 'x'), 5).before == Before::another_call);
  CHECK(inputs.find(step('a', 5, 'x'), 5).before == Before::another_call);
  CHECK(inputs.find(step('a', 0, 'x'), 0).before == Before::another_call);
  CHECK(inputs.answer(step('a', 0, 'x'), Before::another_call).units == 0);
}

TEST_CASE("only the latest keys are remembered") {
  TakenInputs inputs;
  for (std::size_t i = 0; i <= TakenInputs::k_most; ++i) {
    inputs.add(step(static_cast<char>('a' + i)), 1);
  }
  CHECK(inputs.all().size() == TakenInputs::k_most);
  CHECK(inputs.find(step('a'), 1).before == Before::no);
  CHECK(inputs.find(step('b'), 1).before == Before::yes);
}
