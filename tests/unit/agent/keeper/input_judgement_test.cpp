#include "agent/keeper/input_judgement.hpp"

#include <doctest/doctest.h>

#include <string_view>

using namespace dockbridge;
using agent::InputWait;
using agent::judge_input;
using agent::OutputEnd;
using wire::WaitsForInput;

namespace {

/// A reader whose event loop has a timer, which may be work.
constexpr InputWait k_timed{.waits = WaitsForInput::unknown, .has_timer = true, .timeout = seconds(4)};
constexpr InputWait k_hidden{.waits = WaitsForInput::unknown};
constexpr InputWait k_secret{.waits = WaitsForInput::unknown, .may_ask_secret = true};

OutputEnd output(std::string_view printed) {
  OutputEnd end;
  end.append(printed);
  return end;
}

OutputEnd after_input(std::string_view before, std::string_view input, std::string_view printed) {
  OutputEnd end = output(before);
  end.note_input(input);
  end.append(printed);
  return end;
}

bool has_answered(const OutputEnd& end, milliseconds silence) {
  return judge_input(k_hidden, end, silence).has_answered;
}

}  // namespace

TEST_CASE("input judgement: a program with a timer waits if a prompt was printed") {
  const auto waits = [](const OutputEnd& end) { return judge_input(k_timed, end, seconds(1)).waits; };
  CHECK(waits(output("Name? ")) == WaitsForInput::yes);
  CHECK(waits(output("Fetching... ")) == WaitsForInput::unknown);
  CHECK(waits(output("Loading ..")) == WaitsForInput::unknown);
  CHECK(waits(output("  12%")) == WaitsForInput::unknown);
  CHECK(waits(output("done\n")) == WaitsForInput::unknown);
  CHECK(waits(after_input("> ", "await slow()\n", "")) == WaitsForInput::unknown);
  CHECK(waits(after_input("> ", "1\n", "1\n> ")) == WaitsForInput::yes);
}

TEST_CASE("input judgement: an unfinished line without a prompt implies a hidden timer") {
  constexpr InputWait k_node{.waits = WaitsForInput::yes, .may_hide_timer = true, .is_alone = true};
  const auto judged = [&](std::string_view printed) { return judge_input(k_node, output(printed), seconds(1)); };
  CHECK(judged("").waits == WaitsForInput::yes);
  CHECK(judged("ready\n").has_answered);
  CHECK(judged("> ").waits == WaitsForInput::yes);
  CHECK(judged("Fetching... ").waits == WaitsForInput::unknown);
  CHECK_FALSE(judged("Fetching... ").has_answered);
}

TEST_CASE("input judgement: a hidden reader asks for a password on an unfinished line") {
  CHECK(judge_input(k_secret, output("Password: "), seconds(1)).waits == WaitsForInput::yes);
  CHECK(judge_input(k_secret, output("working\n"), seconds(1)).waits == WaitsForInput::unknown);
  CHECK(judge_input(k_hidden, output("Password: "), seconds(1)).waits == WaitsForInput::unknown);
  const auto early = judge_input(k_secret, output("Password: "), milliseconds(10));
  CHECK(early.waits == WaitsForInput::unknown);
  CHECK(early.recheck_after == milliseconds(90));
}

TEST_CASE("input judgement: an echo or a blank line does not answer a line") {
  CHECK_FALSE(
      has_answered(after_input("$ ", "sleep 1; echo late\r", "sleep 1; echo late\r\n\x1b[?2004l\r"), seconds(9)));
  CHECK_FALSE(has_answered(after_input("Password: ", "wrong\r", "\r\n"), seconds(9)));
  CHECK_FALSE(has_answered(after_input("$ ", "make\r", "make\r\ncc -c a.c\r\n"), seconds(9)));
  CHECK(has_answered(after_input("$ ", "echo a\r", "echo a\r\na\r\n$ "), milliseconds(300)));
  CHECK_FALSE(has_answered(after_input("$ ", "echo a\r", "echo a\r\na\r\n$ "), milliseconds(299)));
  CHECK(has_answered(after_input("$ ", "x=1\r", "x=1\r\n$ "), milliseconds(300)));
}

TEST_CASE("input judgement: any output answers a key") {
  CHECK(has_answered(after_input("", "j", "\x1b[5;1Hnext line"), milliseconds(300)));
  CHECK(has_answered(after_input("$ ", "ls", "ls"), milliseconds(300)));
  CHECK_FALSE(has_answered(after_input("", "j", ""), seconds(9)));
}
