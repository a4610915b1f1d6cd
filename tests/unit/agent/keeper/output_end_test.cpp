#include "agent/keeper/output_end.hpp"

#include <doctest/doctest.h>

#include <string>

using dockbridge::agent::OutputEnd;

namespace {

bool is_unfinished(std::string_view output) {
  OutputEnd end;
  end.append(output);
  return end.is_unfinished_line();
}

}  // namespace

TEST_CASE("output end: a prompt is an unfinished line, a message is not") {
  CHECK(is_unfinished("Name? "));
  CHECK(is_unfinished("hello\r\n\x1b[1G\x1b[0J> \x1b[3G"));
  CHECK(is_unfinished("In [1]: \r\r\n\r\r\n \b\x1b[2A\x1b[8C\x1b[?25h"));
  CHECK_FALSE(is_unfinished(""));
  CHECK_FALSE(is_unfinished("done\n"));
  CHECK_FALSE(is_unfinished("await sleep()\r\r\n"));
  CHECK_FALSE(is_unfinished("done\r\n\x1b[?2004l\x1b]0;title\a\x1b(B\x1b[m\r"));
}

TEST_CASE("output end: only the end is kept, for any pieces") {
  OutputEnd end;
  end.append("prompt> ");
  end.append(std::string(10'000, 'x') + "\n");
  CHECK_FALSE(end.is_unfinished_line());
  end.append("> ");
  CHECK(end.is_unfinished_line());
}

TEST_CASE("output end: a prompt ends as prompts do, a report of progress does not") {
  const auto is_prompt = [](std::string_view output) {
    OutputEnd end;
    end.append(output);
    return end.is_prompt();
  };
  for (const auto* prompt : {"Name? ", "Password:", ">>> ", "root@box:/# ", "$ ", "Continue [y/N] ", "(gdb) ",
                             "package name: (app) ", "\x1b[32m❯\x1b[39m ", "In [1]: \r\r\n \b\x1b[2A\x1b[8C"}) {
    CAPTURE(prompt);
    CHECK(is_prompt(prompt));
  }
  for (const auto* report :
       {"Fetching... ", "Loading", "Loading . .", "\r 50%", "⠋ Building", "wait…", "3/10", "", "Name? \n", " \r"}) {
    CAPTURE(report);
    CHECK_FALSE(is_prompt(report));
  }
}

TEST_CASE("output end: text typed behind a prompt leaves it a prompt until the line ends") {
  OutputEnd end;
  end.append("In [1]: ");
  end.note_input("abc");
  end.append("abc");
  CHECK(end.is_prompt());
  end.note_input("");
  end.append("\b\b");
  CHECK(end.is_prompt());
  end.note_input("\r");
  CHECK_FALSE(end.is_prompt());
  end.append("\r\nworking");
  CHECK_FALSE(end.is_prompt());
}
