#include "agent/files/text/edit.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace dockbridge;
using agent::apply_edits;
using agent::TextEdit;

namespace {

Result<std::string> edited(const std::string& text, const std::vector<TextEdit>& edits) {
  const auto result = apply_edits(text, edits);
  return result ? Result<std::string>(result->text) : fail(result.error());
}

Error refused(const std::string& text, const std::vector<TextEdit>& edits) {
  const auto result = apply_edits(text, edits);
  REQUIRE(!result);
  return result.error();
}

bool says(const Error& error, const std::string& part) {
  return error.sentence().find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("edit: replaces the only occurrence of its text") {
  CHECK(edited("one two three", {{"two", "2"}}) == "one 2 three");
  CHECK(edited("one\ntwo\nthree\n", {{"one\ntwo\n", ""}}) == "three\n");
  CHECK(edited("tail", {{"tail", "tail\nmore"}}) == "tail\nmore");
  CHECK(edited("ä€😀", {{"€", "$"}}) == "ä$😀");
}

TEST_CASE("edit: several edits apply in order, each to the previous result") {
  const std::vector<TextEdit> edits = {{"a", "b"}, {"b", "c", true}, {"cc", "done"}};
  const auto result = apply_edits("ab", edits);
  REQUIRE(result);
  CHECK(result->text == "done");
  CHECK(result->replacements == std::vector<std::size_t>{1, 2, 1});
  CHECK(apply_edits("unchanged", {})->text == "unchanged");
}

TEST_CASE("edit: replaceAll replaces from left to right and counts") {
  const auto result = apply_edits("aaaaa", std::vector<TextEdit>{{"aa", "b", true}});
  REQUIRE(result);
  CHECK(result->text == "bba");
  CHECK(result->replacements == std::vector<std::size_t>{2});
  CHECK(edited("x.x.x", {{"x", "xx", true}}) == "xx.xx.xx");
  CHECK(edited("x", {{"x", "y", true}}) == "y");
}

TEST_CASE("edit: an empty or unchanged text is rejected") {
  CHECK(refused("text", {{"", "new"}}).code == ErrorCode::empty_old_text);
  CHECK(refused("text", {{"text", "text"}}).code == ErrorCode::identical_texts);
  CHECK(refused("a\r\nb\r\n", {{"a\nb", "a\r\nb"}}).code == ErrorCode::identical_texts);
  CHECK(refused("text", {{"other", "new"}}).code == ErrorCode::no_match);
  CHECK(refused("text", {{"other", "new", true}}).code == ErrorCode::no_match);
  CHECK(refused("", {{"other", "new"}}).code == ErrorCode::no_match);
}

TEST_CASE("edit: an error names which of several edits failed") {
  const Error error = refused("one two", {{"one", "1"}, {"three", "3"}, {"two", "2"}});
  CHECK(error.code == ErrorCode::no_match);
  CHECK(error.message.starts_with("Edit 2 of 3: "));
  CHECK(!says(error, "It was there"));
  CHECK(refused("one", {{"two", "2"}}).message.starts_with("oldString"));
  CHECK(says(refused("one two", {{"one two", "1"}, {"two", "2"}}), "It was there before the edits ahead of it"));
}

TEST_CASE("edit: an ambiguous text reports count, lines and next step") {
  const Error error = refused("x\ny\nx\n\nx x\n", {{"x", "z"}});
  CHECK(error.code == ErrorCode::ambiguous_match);
  CHECK(says(error, "4 times, in lines 1, 3, 5"));
  CHECK(says(error, "replaceAll"));
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "again\n";
  }
  CHECK(says(refused(many, {{"again", "z"}}), "1000 times, in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more"));
  CHECK(refused("aaa", {{"aa", "b"}}).code == ErrorCode::ambiguous_match);  // overlapping places
}

TEST_CASE("edit: LF in an edit matches CR LF in a CR LF file") {
  const std::string text = "one\r\ntwo\r\nthree\r\n";
  CHECK(edited(text, {{"one\ntwo", "1\n2\n2b"}}) == "1\r\n2\r\n2b\r\nthree\r\n");
  CHECK(edited(text, {{"two", "2\n2b"}}) == "one\r\n2\r\n2b\r\nthree\r\n");
  CHECK(edited(text, {{"two\n", ""}}) == "one\r\nthree\r\n");
  CHECK(edited(text, {{"\ntwo", ""}}) == "one\r\nthree\r\n");
  CHECK(edited(text, {{"two", "2\r\n2b"}}) == "one\r\n2\r\n2b\r\nthree\r\n");
  CHECK(edited(text, {{"two\r\n", "2\r\n"}}) == "one\r\n2\r\nthree\r\n");
  CHECK(edited(text, {{"two\r\n", "2\n"}}) == "one\r\n2\nthree\r\n");  // applied literally
  CHECK(edited("one\r\n", {{"one\n", "a\nb\n"}, {"a\nb\n", "c\n"}}) == "c\r\n");
}

TEST_CASE("edit: no match does not blame the line ends of a CR LF file") {
  const Error error = refused("\tone\r\n\ttwo\r\n", {{"  one\n  two", "x"}});
  CHECK(says(error, "only in tabs against spaces ("));
}

TEST_CASE("edit: CR LF does not match in an LF file, and the error says why") {
  const Error error = refused("one\ntwo\n", {{"one\r\ntwo", "1"}});
  CHECK(error.code == ErrorCode::no_match);
  CHECK(says(error, "only in line ends (line 1: LF in the file, CR LF in oldString)"));
}

TEST_CASE("edit: each place keeps its line ends in a mixed file") {
  const std::string text = "a\r\nb\r\n--\nc\nd\n";
  CHECK(edited(text, {{"a\nb\n", "1\n2\n"}}) == "1\r\n2\r\n--\nc\nd\n");
  CHECK(edited(text, {{"c\nd\n", "1\n2\n"}}) == "a\r\nb\r\n--\n1\n2\n");
  CHECK(edited(text, {{"a", "1\n2"}}) == "1\r\n2\r\nb\r\n--\nc\nd\n");
  CHECK(edited(text, {{"d", "1\n2"}}) == "a\r\nb\r\n--\nc\n1\n2\n");
  CHECK(edited("a\r\nb\r\n--\nend", {{"end", "1\n2"}}) == "a\r\nb\r\n--\n1\n2");
}

TEST_CASE("edit: equal lines with LF and CR LF are ambiguous in a mixed file") {
  const std::string text = "a\r\nb\r\n--\na\nb\n";
  const Error error = refused(text, {{"a\nb", "1"}});
  CHECK(error.code == ErrorCode::ambiguous_match);
  CHECK(says(error, "2 times, in lines 1, 4"));
  const auto all = apply_edits(text, std::vector<TextEdit>{{"a\nb", "1\n2", true}});
  REQUIRE(all);
  CHECK(all->text == "1\r\n2\r\n--\n1\n2\n");
  CHECK(all->replacements == std::vector<std::size_t>{2});
  CHECK(edited(text, {{"a\nb", "(a\r\nb)", true}}) == "(a\r\nb)\r\n--\n(a\r\nb)\n");
}

TEST_CASE("edit: a result that is too large is rejected before it is built") {
  // 256 GiB: a large text many times, not a small text very many times. A sanitizer checks the rest of the file at each
  // place.
  const Error error = refused(std::string(16 * 1024, 'a'), {{"a", std::string(16 * 1024 * 1024, 'b'), true}});
  CHECK(error.code == ErrorCode::result_too_large);
}

TEST_CASE("edit: quadratic inputs take linear time") {
  const std::string text(8 * 1024 * 1024, 'a');
  const std::string old_text = std::string(1024 * 1024, 'a') + "b";
  CHECK(refused(text, {{old_text, "x"}}).code == ErrorCode::no_match);
  CHECK(refused(text, {{std::string(1024 * 1024, 'a'), "x"}}).code == ErrorCode::ambiguous_match);
  CHECK(edited(text, {{std::string(1024 * 1024, 'a'), "x", true}}) == std::string(8, 'x'));
}
