#include "wire/file_read_messages.hpp"

#include <doctest/doctest.h>

#include "unit/wire/messages.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

const std::string k_revision(32, 'a');

json facts() {
  return {{"path", "/a"}, {"size", 4}, {"mode", 0644}, {"modifiedAtMs", -5}};
}

json text_answer() {
  json head = facts();
  head.update({{"revision", k_revision},
               {"kind", "text"},
               {"previousRevision", std::string(32, 'b')},
               {"firstLine", -2},
               {"lines", 1},
               {"totalLines", 7},
               {"more", true},
               {"cutLines", 1},
               {"encoding", "utf-16le"},
               {"lineEnds", "crlf"},
               {"finalNewline", false}});
  return head;
}

json image_answer() {
  json head = facts();
  head.update({{"revision", k_revision}, {"kind", "image"}, {"type", "image/png"}, {"width", 3}, {"height", 5}});
  return head;
}

/// Receives an answer and writes it again.
template <typename Answer>
std::pair<json, std::string> sent_again(const json& head, const std::string& body = "") {
  const auto answer = message<Answer>(head, body);
  const auto sent = wire::outgoing(answer);
  return {sent.head, std::string(sent.body())};
}

}  // namespace

TEST_CASE("file.read: request and answer survive the round trip") {
  const json request = {{"op", "file.read"}, {"path", "/a"}, {"owner", "ann"}, {"offset", -10},
                        {"limit", 20},       {"column", 30}, {"maxLine", 40},  {"maxBytes", 50}};
  const auto read = message<wire::FileReadRequest>(request);
  CHECK(read.offset == -10);
  CHECK(read.max_line_characters == 40);
  CHECK(wire::to_json(read) == request);
  const auto text = message<wire::FileReadAnswer>(text_answer(), "abc\n");
  CHECK(text.path == "/a");
  CHECK(text.modified_at_ms == -5);
  CHECK(text.first_line == -2);
  CHECK(text.total_lines == 7);
  CHECK(text.line_ends == wire::LineEnds::crlf);
  CHECK(text.text == "abc\n");
  CHECK(sent_again<wire::FileReadAnswer>(text_answer(), "abc\n") == std::pair(text_answer(), std::string("abc\n")));
  CHECK(message<wire::FileReadAnswer>(image_answer()).kind == wire::FileKind::image);
  CHECK(sent_again<wire::FileReadAnswer>(image_answer()).first == image_answer());
  json binary = image_answer();
  binary.update({{"kind", "binary"}, {"type", "ELF program"}});
  binary.erase("width");
  binary.erase("height");
  CHECK(sent_again<wire::FileReadAnswer>(binary).first == binary);
}

TEST_CASE("file.read: bad fields are named") {
  check_fields<wire::FileReadRequest>(
      {{"path", "/a"}, {"owner", "ann"}, {"offset", 1}, {"limit", 2}, {"column", 3}, {"maxLine", 4}, {"maxBytes", 5}},
      "");
  check_fields<wire::FileReadAnswer>(text_answer(), "abc\n", {"mode", "previousRevision", "totalLines"});
  json image = image_answer();
  check_fields<wire::FileReadAnswer>(image, "", {"mode", "width"});
  image["type"] = "text/html";
  CHECK(bad_path<wire::FileReadAnswer>(image) == "type");
  json text = text_answer();
  text["lines"] = 5;
  CHECK(bad_path<wire::FileReadAnswer>(text, "abc\n") == "lines");
}

TEST_CASE("file.bytes: request and answer survive a round trip, bad fields are named") {
  const json request = {{"op", "file.bytes"}, {"path", "/a"}, {"offset", 7}, {"max", 8}};
  CHECK(wire::to_json(message<wire::FileBytesRequest>(request)) == request);
  check_fields<wire::FileBytesRequest>(request, "");
  CHECK(sent_again<wire::FileBytesAnswer>(facts(), "bytes") == std::pair(facts(), std::string("bytes")));
  check_fields<wire::FileBytesAnswer>(facts(), "");
}

TEST_CASE("file.image: request and answer survive the round trip, bad fields are named") {
  const json request = {{"op", "file.image"}, {"path", "/a"}, {"owner", "ann"}, {"maxSide", 800}};
  CHECK(wire::to_json(message<wire::FileImageRequest>(request)) == request);
  check_fields<wire::FileImageRequest>(request, "");
  json large = request;
  large["maxSide"] = std::uint64_t{1} << 32U;
  CHECK(bad_path<wire::FileImageRequest>(large) == "maxSide");
  json answer = image_answer();
  answer.erase("kind");
  CHECK(sent_again<wire::FileImageAnswer>(answer, "png") == std::pair(answer, std::string("png")));
  check_fields<wire::FileImageAnswer>(answer, "", {"path", "size", "mode", "modifiedAtMs"});
  answer["type"] = "image/gif";  // scaling never produces it
  CHECK(bad_path<wire::FileImageAnswer>(answer) == "type");
}

TEST_CASE("file.open: request and answer survive the round trip, bad fields are named") {
  json request = {{"op", "file.open"}, {"path", "/a"}, {"staging", "x"}, {"owner", "ann"}};
  CHECK(wire::to_json(message<wire::FileOpenRequest>(request)) == request);
  check_fields<wire::FileOpenRequest>(request, "", {"owner"});
  request.erase("owner");
  CHECK(wire::to_json(message<wire::FileOpenRequest>(request)) == request);
  json answer = facts();
  answer["staging"] = true;
  CHECK(sent_again<wire::FileOpenAnswer>(answer).first == answer);
  answer.update(image_answer());
  CHECK(sent_again<wire::FileOpenAnswer>(answer).first == answer);
  check_fields<wire::FileOpenAnswer>(answer, "", {"path", "modifiedAtMs", "revision", "kind", "width"});
}

TEST_CASE("file.next: request and answer survive the round trip, bad fields are named") {
  const json request = {{"op", "file.next"}, {"staging", "x"}, {"max", 9}};
  CHECK(wire::to_json(message<wire::FileNextRequest>(request)) == request);
  check_fields<wire::FileNextRequest>(request, "");
  const json piece = {{"staging", true}, {"offset", 1}, {"checked", 2}};
  CHECK(sent_again<wire::FileNextAnswer>(piece, "b") == std::pair(piece, std::string("b")));
  const json last = {{"offset", 1}, {"checked", 2}, {"revision", k_revision}};
  CHECK(sent_again<wire::FileNextAnswer>(last).first == last);
  check_fields<wire::FileNextAnswer>(last, "", {"revision"});
}

TEST_CASE("file messages: any request can have a root") {
  json head = wire::to_json(wire::FileNextRequest{"x", 1});
  wire::set_root(head, "");
  CHECK_FALSE(head.contains("root"));
  CHECK(wire::root_from(wire::Field(head)).empty());
  wire::set_root(head, "/app");
  CHECK(wire::root_from(wire::Field(head)) == "/app");
  head["root"] = 1;
  const auto root = wire::read_fields(head, ErrorCode::bad_request, wire::root_from);
  REQUIRE_FALSE(root);
  CHECK(root.error().message == "Malformed message: root");
}
