#include "tools/tool_selection.hpp"

#include <doctest/doctest.h>

using dockbridge::tools::ToolSelection;

TEST_CASE("tool selection: all tools by default") {
  const ToolSelection all;
  CHECK(all.contains("file_undo"));
  CHECK(all.keep_sentences("file_undo does it. Really.") == "file_undo does it. Really.");
}

TEST_CASE("tool selection: names, globs and minimal select tools") {
  const auto minimal = ToolSelection::parse("minimal");
  REQUIRE(minimal);
  for (const char* tool : {"execute_command", "check_process", "send_input", "file_read", "file_edit", "file_write"}) {
    CHECK(minimal->contains(tool));
  }
  CHECK_FALSE(minimal->contains("control_process"));
  CHECK_FALSE(minimal->contains("file_grep"));
  const auto mixed = ToolSelection::parse("file_gr*,minimal");
  REQUIRE(mixed);
  CHECK(mixed->contains("file_grep"));
  CHECK(mixed->contains("execute_command"));
  CHECK_FALSE(mixed->contains("file_glob"));
}

TEST_CASE("tool selection: an entry without a match is an error with the names") {
  for (const char* bad : {"", "file_grepp", "execute_command,", "nothing*", "minimal,x"}) {
    CAPTURE(bad);
    const auto selection = ToolSelection::parse(bad);
    REQUIRE_FALSE(selection);
    CHECK(selection.error().next_step.find("file_download") != std::string::npos);
  }
}

TEST_CASE("tool selection: sentences that name a hidden tool are removed") {
  const auto selection = ToolSelection::parse("execute_command,file_read");
  REQUIRE(selection);
  CHECK(selection->keep_sentences("It runs. check_process waits. file_read reads.") == "It runs. file_read reads.");
  CHECK(selection->keep_sentences("check_process waits for it.") == "");
  CHECK(selection->keep_sentences("One.\nUse send_input.") == "One.");
  CHECK(selection->keep_sentences("my_check_process is no tool.") == "my_check_process is no tool.");
  CHECK(ToolSelection()
            .visible_part([](const std::string& tool) { return tool != "file_read"; })
            .keep_sentences("A. file_read reads. B.") == "A. B.");
}
