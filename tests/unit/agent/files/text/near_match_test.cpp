#include "agent/files/text/near_match.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "agent/files/text/overlooked.hpp"

using namespace dockbridge;
using agent::explain_no_match;

namespace {

std::string computed_lines(std::size_t count) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) {
    text += "value_" + std::to_string(i * 7919) + " = compute(" + std::to_string(i) + ");\n";
  }
  return text;
}

bool says(const std::string& text, const std::string& wanted, const std::string& part) {
  const std::string told = explain_no_match(text, wanted);
  INFO(told);
  const bool found = told.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

/// Checks that the first line and another line in the file differ only in this.
bool differ_only_in(const std::string& in_file, const std::string& wanted, const std::string& what) {
  return says("first line\n" + in_file + "\nlast line\n", wanted, "from it only in " + what);
}

}  // namespace

TEST_CASE("near match: names overlooked differences with both sides") {
  differ_only_in("\treturn x;", "    return x;",
                 "tabs against spaces (line 2: 1 tab in the file, 4 spaces in oldString)");
  differ_only_in("if (x) {\n  return;\n}", "if (x) {\n    return;\n}",
                 "indentation (line 3: 2 spaces in the file, 4 spaces in oldString)");
  differ_only_in("  call();", "      call();", "indentation (line 2: 2 spaces in the file, 6 spaces in oldString)");
  differ_only_in("one;  \ntwo;", "one;\ntwo;",
                 "blanks at the end of lines (line 2: 2 spaces, LF in the file, LF in oldString)");
  differ_only_in("one;", "one; ", "blanks at the end of lines (line 2: nothing in the file, 1 space in oldString)");
  differ_only_in("a = b;", "a  = b;", "spaces between words (line 2: 1 space in the file, 2 spaces in oldString)");
  differ_only_in("a\t= b;", "a = b;", "tabs against spaces (line 2: 1 tab in the file, 1 space in oldString)");
  differ_only_in("say(“hello”);", "say(\"hello\");", "quotes (line 2: “ in the file, \" in oldString)");
  differ_only_in("say('hello');", "say(\"hello\");", "quotes (line 2: ' in the file, \" in oldString)");
  differ_only_in("1–2", "1-2", "dashes (line 2: – in the file, - in oldString)");
  differ_only_in("Hello there", "hello there", "upper and lower case (line 2: H in the file, h in oldString)");
  differ_only_in(
      "no\xC2\xA0"
      "break",
      "no break", "invisible or special blank characters (line 2: U+00A0 in the file, 1 space in oldString)");
  differ_only_in("zero\xE2\x80\x8Bwidth", "zerowidth",
                 "invisible or special blank characters (line 2: U+200B in the file, nothing in oldString)");
  differ_only_in("one\r\ntwo", "one\ntwo", "line ends (line 2: CR LF in the file, LF in oldString)");
  differ_only_in("one\n\ntwo", "one\ntwo", "line breaks or empty lines (line 2: LF, LF in the file, LF in oldString)");
  differ_only_in("f(a,\n  b)", "f(a, b)", "line breaks or empty lines");
}

TEST_CASE("near match: several differences are listed, each kind once") {
  differ_only_in("\tsay('a');\n\tsay('b');", "    say(\"a\");\n    say(\"b\");",
                 "tabs against spaces, quotes (line 2:");
}

TEST_CASE("near match: the text around the match is no difference") {
  const std::string told = explain_no_match("x\n\n\n    call( a );   \n\n\ny\n", "call(a);");
  CHECK(told.find("only in spaces between words (") != std::string::npos);
  const std::string lines = explain_no_match("x  \n\tcall();  \n\ny\n", "\n    call();");
  CHECK(lines.find("only in tabs against spaces (line 2:") != std::string::npos);
}

TEST_CASE("near match: a word that continues is not a difference in line breaks") {
  const auto is_only_in = [](const std::string& text, const std::string& wanted) {
    return explain_no_match(text, wanted).find("from it only in") != std::string::npos;
  };
  CHECK(!is_only_in("a = 1\nb = 22\n", "b = 2\n"));
  CHECK(!is_only_in("b = 22", "b = 2\n"));
  CHECK(!is_only_in("b = 22", "b = 2 "));
  CHECK(!is_only_in("b = 2 + c\n", "b = 2\n"));
  CHECK(!is_only_in("a\nbb = 2\n", "\nb = 2\n"));
  CHECK(!is_only_in("a b = 2\n", "\nb = 2\n"));
  says("a = 1\nb = 22\n", "b = 2\n", "\n     2: b = 22");
  // At the ends of the file, only a line break is missing.
  says("b = 2", "b = 2\n", "line 1 differs from it only in line breaks");
  says("b = 2\n", "\nb = 2\n", "line 1 differs from it only in line breaks");
  // The first place that fits is found after those that do not fit, which are not counted.
  says("b = 22\nx222\n22", "\n22\n", "line 3 differs from it only in line breaks");
  says("222", "22\n", "line 1 differs from it only in line breaks");
  const std::string told = explain_no_match("b = 22\nb  = 2\nb = 22\n", "b = 2\n");
  CHECK(told.find("line 2 differs") != std::string::npos);
  CHECK(told.find("other place") == std::string::npos);
}

TEST_CASE("near match: the most similar lines are shown with their numbers") {
  says("first\n\tif x:\n\t\treturn\nlast\n", "    if x:\n        return", "\n     2: \\tif x:\n     3: \\t\\treturn");
  says("a b\na b\na b\n", "a  b", "line 1 differs from it only in spaces between words");
  says("a b\na b\na b\n", "a  b", ", and so do 2 other places");
}

TEST_CASE("near match: the first line that differs is shown") {
  const std::string text = "int main() {\n  int total = 0;\n  return total;\n}\n";
  const std::string wanted = "int main() {\n  int total = 1;\n  return total;\n}\n";
  says(text, wanted,
       "3 of its 4 lines are there from line 1 on, but line 2 is not line 2 of oldString, which is\n          int "
       "total = 1;");
  says(text, wanted, "\n     2:   int total = 0;\n");
  says(text, "void end_without_reply() {\n  int total = 0;\n",
       "1 of its 2 lines is there from line 1 on, but line 1 is not line 1 of oldString");
  says(text, "  return total;\n}\nmore\nand more\n",
       "2 of its 4 lines are there from line 3 on, but there the file ends");
  says("int main() {", "int main() {\n  return 0;\n", "but there the file ends");
}

TEST_CASE("near match: a common line counts less than similar lines") {
  const std::string text =
      "  return nullptr;\n}\n\nWidget* make_the_widget(int width, int height) {\n  return make();\n}\n";
  says(text, "Widget* make_a_widget(int width, int depth) {\n  check_all_arguments(width, depth);\n  return nullptr;",
       "the most similar lines are\n     4: Widget* make_the_widget");
}

TEST_CASE("near match: similar lines are shown if no line is equal") {
  const std::string text = "alpha\nconst int maximum_size = 100;\nomega\n";
  says(text, "const int maximum_size = 200;", "the most similar lines are\n     2: const int maximum_size = 100;");
}

TEST_CASE("near match: states that nothing is similar") {
  CHECK(explain_no_match("alpha\nbeta\n", "something else entirely") == "nothing in the file is similar to it");
  CHECK(explain_no_match("alpha\nbeta\n", "   ") == "nothing in the file is similar to it");
  CHECK(explain_no_match("\n\n", "x") == "nothing in the file is similar to it");
  CHECK(explain_no_match("", "x") == "the file is empty");
}

TEST_CASE("near match: every overlooked difference has a name") {
  std::mt19937 random(5);
  const std::vector<std::string> pieces = {"a",  "A", "b", " ", "  ",       "\t", "\n",          "\r\n",
                                           "\"", "“", "-", "–", "\xC2\xA0", "é",  "\xE2\x80\x8B"};
  const auto made = [&](std::size_t most) {
    std::string text;
    for (std::size_t length = random() % most; length > 0; --length) {
      text += pieces[random() % pieces.size()];
    }
    return text;
  };
  std::size_t found = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string text = made(30);
    const std::string wanted = made(6);
    const auto overlooked = agent::find_overlooked(text, wanted);
    if (!overlooked || text.find(wanted) != std::string::npos) {
      continue;
    }
    ++found;
    CAPTURE(text);
    CAPTURE(wanted);
    CHECK(!overlooked->kinds.empty());
    CHECK(overlooked->begin < overlooked->end);
    CHECK(agent::fold(text.substr(overlooked->begin, overlooked->end - overlooked->begin)) == agent::fold(wanted));
  }
  CHECK(found > 1000);
}

TEST_CASE("near match: the answer is short and fast for texts of any size") {
  const std::string text = computed_lines(50'000);
  const std::string wanted = text.substr(text.size() / 2, 1024 * 1024);
  for (const std::string& searched : {text, std::string(2 * 1024 * 1024, '\n'), std::string(2 * 1024 * 1024, 'x')}) {
    CHECK(explain_no_match(searched, wanted + "!").size() < 4000);
    CHECK(explain_no_match(searched, std::string(1024 * 1024, '\n') + "!").size() < 4000);
    CHECK(explain_no_match(searched, "x" + std::string(1024 * 1024, ' ') + "y").size() < 4000);
  }
}
