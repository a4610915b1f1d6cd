#include "agent/control/taken_inputs.hpp"

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

TEST_CASE("taken inputs: input under a key is not taken twice") {
  TakenInputs inputs;
  CHECK(inputs.find(step('a'), 4).before == Before::no);
  inputs.add(step('a'), 4);
  const auto again = inputs.find(step('a'), 4);
  CHECK(again.before == Before::yes);
  CHECK(again.units == 4);
  CHECK(inputs.find(step('b'), 4).before == Before::no);
}

TEST_CASE("taken inputs: input in pieces continues where it was interrupted") {
  TakenInputs inputs;
  inputs.add(step('a'), 100);
  inputs.add(step('a', 100), 100);
  CHECK(inputs.find(step('a', 0), 100).units == 100);
  CHECK(inputs.find(step('a', 100), 100).before == Before::yes);
  CHECK(inputs.find(step('a', 200), 100).before == Before::no);
  CHECK(inputs.all().size() == 1);
}

TEST_CASE("taken inputs: a repetition of partly accepted input takes nothing more") {
  TakenInputs inputs;
  inputs.add(step('a'), 30);
  const auto again = inputs.find(step('a'), 100);
  CHECK(again.before == Before::yes);
  CHECK(again.units == 30);
}

TEST_CASE("taken inputs: input that was not taken can be repeated") {
  TakenInputs inputs;
  inputs.add(step('a'), 0);
  CHECK(inputs.find(step('a'), 4).before == Before::no);
  CHECK(inputs.all().empty());
}

TEST_CASE("taken inputs: a query reports the units and what the sender had seen") {
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

TEST_CASE("taken inputs: a key of another call is reported without its details") {
  TakenInputs inputs;
  inputs.add(step('a'), 5);
  CHECK(inputs.find(step('a', 0, 'x'), 5).before == Before::another_call);
  CHECK(inputs.find(step('a', 5, 'x'), 5).before == Before::another_call);
  CHECK(inputs.find(step('a', 0, 'x'), 0).before == Before::another_call);
  CHECK(inputs.answer(step('a', 0, 'x'), Before::another_call).units == 0);
}

TEST_CASE("taken inputs: only the latest keys are kept") {
  TakenInputs inputs;
  for (std::size_t i = 0; i <= agent::k_max_taken_keys; ++i) {
    inputs.add(step(static_cast<char>('a' + i)), 1);
  }
  CHECK(inputs.all().size() == agent::k_max_taken_keys);
  CHECK(inputs.find(step('a'), 1).before == Before::no);
  CHECK(inputs.find(step('b'), 1).before == Before::yes);
}
