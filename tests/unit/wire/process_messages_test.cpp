#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/field.hpp"
#include "wire/error_message.hpp"
#include "wire/frame.hpp"
#include "wire/input_messages.hpp"
#include "wire/output_messages.hpp"
#include "wire/session_messages.hpp"
#include "wire/wait_messages.hpp"

using namespace dockbridge;
using nlohmann::json;
using wire::Field;

namespace {

const std::string k_id = "proc_1_abc";

/// The head as the other program parses it.
json sent(const json& head) {
  const std::string frame = wire::encode(head);
  wire::FrameReader reader(0);
  reader.feed(frame);
  auto received = reader.next();
  REQUIRE(received);
  REQUIRE(*received);
  return (*received)->head;
}

template <typename Message>
Message returned(const Message& message) {
  const json head = sent(wire::to_json(message));
  const auto read = wire::message_from<Message>(head, ErrorCode::bad_request);
  REQUIRE(read);
  return *read;
}

template <typename Message>
std::string body_of(const Message& message) {
  return std::string(wire::outgoing(message).body());
}

/// Checks that a message survives the round trip. Compares the JSON.
template <typename Message>
void check_survives(const Message& message) {
  CHECK(wire::to_json(returned(message)) == wire::to_json(message));
}

using Reader = std::function<void(const Field& head)>;
using dockbridge::test::field;

/// Path of the field that makes the head malformed; empty if it is well formed.
std::string bad_field(const json& head, const Reader& read) {
  try {
    const Field field(head);
    read(field);
    return "";
  } catch (const wire::BadField& bad) {
    return bad.what();
  }
}

/// Sets each pointer to its value in a good head, and expects the path in the error.
struct Malformed {
  const char* pointer;
  json value;
  std::string path;
};
void check_paths(const json& good, const Reader& read, const std::vector<Malformed>& cases) {
  CHECK(bad_field(good, read).empty());
  for (const auto& [pointer, value, path] : cases) {
    CAPTURE(pointer);
    CAPTURE(value.dump());
    json head = good;
    head[json::json_pointer(pointer)] = value;
    CHECK(bad_field(head, read) == path);
  }
}

template <typename Message>
Reader reader_of() {
  return [](const Field& head) { (void)wire::from_json<Message>(head); };
}

/// Removes each required field in turn, and expects its name in the error.
void check_required(const json& good, const Reader& read, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    CAPTURE(key);
    json head = good;
    head.erase(key);
    CHECK(bad_field(head, read) == key);
  }
}

wire::WaitCondition full_condition() {
  wire::WaitCondition until;
  until.known = {7, 9};
  until.pattern = "a+";
  until.search_from = {1, 2};
  until.port = 8080;
  until.idle = milliseconds(500);
  until.longest_idle = milliseconds(900);
  until.input = until.answer = until.closed = true;
  return until;
}

wire::StartRequest full_start() {
  wire::StartRequest request;
  request.command = {.id = k_id,
                     .command = "make \xff",
                     .cwd = "/app",
                     .environment = {{"A", "1"}, {"B", "x=y"}, {"C", ""}},
                     .input = "the input",
                     .max_runtime = milliseconds(5000),
                     .output_limit = 1000,
                     .nice = 5,
                     .terminal = wire::TerminalSize{80, 24},
                     .user = "1000:1000",
                     .owner = "alice",
                     .rationale = "to see",
                     .call = std::string(32, 'c')};
  request.above = 17;
  request.wait = {milliseconds(1500), 4096, full_condition()};
  return request;
}

wire::Once some_once() {
  return {std::string(32, 'a'), std::string(32, 'b'), 3, {4, 5}};
}

wire::ProcessState some_state() {
  wire::ProcessState state;
  state.id = k_id;
  state.number = 3;
  state.out = {3, 3, 3};
  state.err = {2, 2, 2};
  state.command = "make";
  return state;
}

}  // namespace

TEST_CASE("messages: a start keeps command, environment and input") {
  const wire::StartRequest request = full_start();
  const json head = sent(wire::to_json(request));
  const std::string body = body_of(request);
  CHECK(field(head, "op") == "start");
  CHECK(body == std::string("make \xff"
                            "A=1\0B=x=y\0C=\0the input",
                            28));
  const Field field(head);
  const auto read = wire::from_json<wire::StartRequest>(field, body);
  CHECK(wire::to_json(read) == wire::to_json(request));
  CHECK(body_of(read) == body);
  CHECK(read.command.environment == request.command.environment);
  CHECK(read.command.input == "the input");

  wire::StartRequest small;
  small.command.id = k_id;
  small.command.command = "true";
  const json small_head = sent(wire::to_json(small));
  CHECK_FALSE(small_head.contains("above"));
  CHECK_FALSE(small_head.contains("call"));
  CHECK(small_head.at("until") == json::object());
  const Field small_field(small_head);
  CHECK_FALSE(wire::from_json<wire::StartRequest>(small_field, "true").command.input);
}

TEST_CASE("messages: a malformed start names the field") {
  const wire::StartRequest request = full_start();
  const std::string body = body_of(request);
  const json good = sent(wire::to_json(request));
  const Reader read = [&](const Field& head) { (void)wire::from_json<wire::StartRequest>(head, body); };
  check_required(good, read,
                 {"process", "cwd", "owner", "rationale", "commandBytes", "environmentBytes", "stdin", "maxRuntimeMs",
                  "timeoutMs", "carry", "until"});
  check_paths(good, read,
              {{"/process", "../x", "process"},
               {"/process", "", "process"},
               {"/cwd", 1, "cwd"},
               {"/commandBytes", body.size() + 1, "commandBytes"},
               {"/environmentBytes", body.size(), "environmentBytes"},
               {"/commandBytes", UINT64_MAX, "commandBytes"},
               {"/environmentBytes", UINT64_MAX, "environmentBytes"},
               {"/commandBytes", 10, "body: an environment entry is not NAME=value"},
               {"/timeoutMs", -1, "timeoutMs"},
               {"/timeoutMs", std::uint64_t{1} << 32U, "timeoutMs"},
               {"/maxRuntimeMs", "1", "maxRuntimeMs"},
               {"/nice", 20, "nice"},
               {"/terminal", {80}, "terminal"},
               {"/terminal", {80, 0}, "terminal[1]"},
               {"/terminal", {501, 24}, "terminal[0]"},
               {"/user", 1000, "user"},
               {"/until", nullptr, "until"},
               {"/until/port", 65536, "until.port"},
               {"/until/known", {1}, "until.known"},
               {"/until/known", {1, "2"}, "until.known[1]"},
               {"/until/from", nullptr, "until.from"},
               {"/until/idleMs", 0.5, "until.idleMs"},
               {"/until/longestIdleMs", true, "until.longestIdleMs"},
               {"/until/input", 1, "until.input"},
               {"/until/closed", "yes", "until.closed"}});
}

TEST_CASE("messages: a wait survives the round trip with each kind of process name") {
  const wire::WaitTerms terms{milliseconds(10), 5, full_condition()};
  check_survives(wire::WaitRequest{.process = k_id, .wait = terms});
  check_survives(wire::WaitRequest{.process = k_id, .owner = "", .wait = {}});
  check_survives(wire::WaitRequest{.process = "", .owner = "alice", .number = 7, .wait = terms});
  check_survives(wire::WaitRequest{.process = "", .processes = {k_id, "proc_1_b"}, .wait = terms});
  CHECK(field(wire::to_json(wire::WaitRequest{.process = k_id}), "op") == "wait");
}

TEST_CASE("messages: a malformed wait names the field") {
  const Reader read = reader_of<wire::WaitRequest>();
  const json by_id = sent(wire::to_json(wire::WaitRequest{.process = k_id}));
  check_required(by_id, read, {"process", "timeoutMs", "carry", "until"});
  check_paths(by_id, read,
              {{"/process", 7, "process"}, {"/owner", 7, "owner"}, {"/carry", -1, "carry"}, {"/until", 5, "until"}});
  const json by_number = sent(wire::to_json(wire::WaitRequest{.process = "", .owner = "a", .number = 7}));
  check_required(by_number, read, {"owner"});
  check_paths(by_number, read, {{"/number", "7", "number"}, {"/number", 1'000'000'000, "number"}});
  const json several = sent(wire::to_json(wire::WaitRequest{.process = "", .processes = {k_id}}));
  check_paths(several, read,
              {{"/processes", json::array(), "processes"},
               {"/processes", json(json::array_t(wire::k_max_wait_processes + 1, k_id)), "processes"},
               {"/processes/0", "x", "processes[0]"}});
}

TEST_CASE("messages: the sender shortens a duration beyond the limit") {
  const wire::WaitRequest request{.process = k_id, .wait = {std::chrono::hours(24 * 365), 0, {}}};
  CHECK(returned(request).wait.timeout == wire::k_max_duration);
}

TEST_CASE("messages: the answer to a wait keeps its output") {
  wire::WaitAnswer answer{.state = some_state(), .happened = wire::WaitOutcome::pattern};
  answer.line = "";
  answer.searched = {1, 2};
  answer.listener = wire::Listener{42, "node", false, "proc_1_z", 2};
  answer.whole = true;
  answer.out = "out";
  answer.err = "er";
  answer.order = {{1, 2}, {3, 2}};
  const json head = sent(wire::to_json(answer));
  CHECK(field(head, "line") == "");
  const std::string body = body_of(answer);
  const Field field(head);
  const auto read = wire::from_json<wire::WaitAnswer>(field, body);
  CHECK(wire::to_json(read) == wire::to_json(answer));
  CHECK(read.out == "out");
  CHECK(read.err == "er");

  answer.happened = wire::WaitOutcome::ended;
  answer.listener = wire::Listener{0, "", true, "", 0};
  const json other = sent(wire::to_json(answer));
  CHECK_FALSE(other.contains("line"));
  CHECK_FALSE(other.at("listener").contains("process"));
  for (int i = 0; i <= static_cast<int>(wire::WaitOutcome::nothing); ++i) {
    const auto outcome = static_cast<wire::WaitOutcome>(i);
    CHECK(wire::value_named<wire::WaitOutcome>(name_of(outcome)) == outcome);
  }
}

TEST_CASE("messages: a malformed answer to a wait names the field") {
  wire::WaitAnswer answer{.state = some_state(), .happened = wire::WaitOutcome::nothing};
  answer.searched = {1, 2};
  answer.listener = wire::Listener{42, "node", false, "proc_1_z", 2};
  const json good = sent(wire::to_json(answer));
  const Reader read = [](const Field& head) { (void)wire::from_json<wire::WaitAnswer>(head, ""); };
  check_required(good, read, {"process", "happened", "carried"});
  check_paths(good, read,
              {{"/happened", "rain", "happened"},
               {"/carried", true, "carried"},
               {"/carried", 1, "carried"},
               {"/searched", {1, wire::k_max_stream_bytes + 1}, "searched[1]"},
               {"/order", {1}, "order"},
               {"/order", {3, 5, 2, 9}, "order[2]"},
               {"/line", 1, "line"},
               {"/listener", nullptr, "listener"},
               {"/listener/pid", -1, "listener.pid"},
               {"/listener/process", "../x", "listener.process"},
               {"/listener/number", "2", "listener.number"},
               {"/process", json::array(), "process"},
               {"/process/id", "x", "process.id"},
               {"/process/phase", "asleep", "process.phase"},
               {"/process/out", {1, 3, 2}, "process.out"},
               {"/process/used", {1, 2, 3}, "process.used"},
               {"/process/used/2", -1, "process.used[2]"},
               {"/process/command", std::string(wire::k_max_state_text + 1, 'x'), "process.command"}});
}

TEST_CASE("messages: requests for output survive the round trip, bad fields are named") {
  check_survives(wire::ReadRequest{k_id, wire::Stream::err, UINT64_MAX, 100});
  check_survives(wire::ReadRequest{k_id, wire::Stream::out, 0, 0});
  check_survives(wire::GrepRequest{k_id, {"a", true, 3, 5}});
  check_survives(wire::ScreenRequest{k_id});
  check_survives(wire::ListRequest{"alice", 7, 5});
  const json read = sent(wire::to_json(wire::ReadRequest{k_id, wire::Stream::out, 0, 0}));
  check_required(read, reader_of<wire::ReadRequest>(), {"process", "stream", "offset", "max"});
  check_paths(read, reader_of<wire::ReadRequest>(), {{"/offset", -1, "offset"}, {"/stream", 1, "stream"}});
  const json grep = sent(wire::to_json(wire::GrepRequest{k_id, {"a", true, 3, 5}}));
  check_required(grep, reader_of<wire::GrepRequest>(), {"process", "pattern", "ignoreCase", "context", "most"});
  check_paths(grep, reader_of<wire::GrepRequest>(), {{"/pattern", nullptr, "pattern"}, {"/most", "5", "most"}});
  CHECK(returned(wire::GrepRequest{k_id, {"a", true, 1000, 5}}).query.context == wire::k_max_context);
  check_paths(json{{"process", k_id}}, reader_of<wire::ScreenRequest>(), {{"/process", "a b", "process"}});
  const json list = sent(wire::to_json(wire::ListRequest{"alice", 7, 5}));
  check_required(list, reader_of<wire::ListRequest>(), {"owner", "most"});
  check_paths(list, reader_of<wire::ListRequest>(), {{"/finished", -1, "finished"}, {"/owner", 1, "owner"}});
  const json without = {{"owner", "alice"}, {"most", 7U}};
  const Field field(without);
  CHECK(wire::from_json<wire::ListRequest>(field).most_finished == 7);
}

TEST_CASE("messages: the answer to a read is checked against the request") {
  const wire::ReadRequest request{k_id, wire::Stream::out, 10, 5};
  const wire::ReadAnswer answer{12, "bytes", {100, 10, 12}};
  const json head = sent(wire::to_json(answer));
  const auto with = [&](const std::string& body) {
    return [&request, body](const Field& field) { (void)wire::ReadAnswer::from_json(field, body, request); };
  };
  const Field field(head);
  const auto read = wire::ReadAnswer::from_json(field, "bytes", request);
  CHECK(wire::to_json(read) == wire::to_json(answer));
  CHECK(read.bytes == "bytes");
  CHECK(bad_field(head, with("longer")) == "body");
  check_required(head, with(""), {"offset", "stream"});
  check_paths(head, with(""),
              {{"/offset", 9, "offset"},
               {"/offset", wire::k_max_stream_bytes + 1, "offset"},
               {"/stream", {1, 2}, "stream"},
               {"/stream", {3, 2, 1}, "stream"},
               {"/stream/0", "1", "stream[0]"}});
}

TEST_CASE("messages: answers to grep, screen and list survive, bad fields are named") {
  const wire::GrepAnswer grep{"out", "error", {3, 4}, {1, 2}};
  const json grep_head = sent(wire::to_json(grep));
  const Field grep_field(grep_head);
  const auto lines = wire::from_json<wire::GrepAnswer>(grep_field, "outerror");
  CHECK(wire::to_json(lines) == wire::to_json(grep));
  CHECK(lines.err == "error");
  const Reader read_grep = [](const Field& head) { (void)wire::from_json<wire::GrepAnswer>(head, "outerror"); };
  check_required(grep_head, read_grep, {"matches", "shown", "outBytes"});
  check_paths(grep_head, read_grep, {{"/outBytes", 9, "outBytes"}, {"/shown/1", -1, "shown[1]"}});

  wire::ScreenAnswer screen;
  screen.size = {80, 24};
  screen.addressed = 5;
  const json screen_head = sent(wire::to_json(screen));
  const Field screen_field(screen_head);
  const auto seen = wire::from_json<wire::ScreenAnswer>(screen_field, "text");
  CHECK(wire::to_json(seen) == wire::to_json(screen));
  CHECK(seen.text == "text");
  const Reader read_screen = [](const Field& head) { (void)wire::from_json<wire::ScreenAnswer>(head, ""); };
  check_required(screen_head, read_screen, {"screen"});
  check_paths(screen_head, read_screen,
              {{"/screen/rows", 501, "screen.rows"},
               {"/screen/cursor", {1}, "screen.cursor"},
               {"/screen/cursor/1", "x", "screen.cursor[1]"},
               {"/screen/alternate", 0, "screen.alternate"}});

  wire::ListBody body;
  CHECK(body.add(some_state()));
  CHECK(body.add(some_state()));
  CHECK(body.size() == 2);
  const json list_head = sent(wire::to_json(wire::ListAnswer{.left_out = 3, .unreadable = 1}));
  const Field list_field(list_head);
  const auto list = wire::from_json<wire::ListAnswer>(list_field, body.text());
  CHECK(list.processes.size() == 2);
  CHECK(list.left_out == 3);
  CHECK(list.unreadable == 1);
  const auto read_list = [](const std::string& text) {
    return [text](const Field& head) { (void)wire::from_json<wire::ListAnswer>(head, text); };
  };
  check_required(list_head, read_list(body.text()), {"left"});
  CHECK(bad_field(list_head, read_list("[]")) == "body");
  CHECK(bad_field(list_head, read_list("{}")) == "processes");
  CHECK(bad_field(list_head, read_list(R"({"processes":[{}]})")) == "processes[0].id");
}

TEST_CASE("messages: the body of a list ends before the first state that does not fit") {
  wire::ProcessState large = some_state();
  large.rationale = std::string(wire::k_max_state_text, 'x');
  wire::ListBody body;
  while (body.add(large)) {
  }
  CHECK(body.size() > 50);
  CHECK_FALSE(body.add(some_state()));
  CHECK(body.text().size() <= wire::k_max_body_to_host);
  CHECK(wire::parse_bounded(body.text(), 8)->at("processes").size() == body.size());
}

TEST_CASE("messages: input requests survive the round trip") {
  check_survives(wire::InputRequest{k_id, true, true, some_once()});
  check_survives(wire::InputRequest{k_id, false, false, {}});
  check_survives(wire::KeysRequest{k_id, {"up", "ctrl-c"}, some_once()});
  check_survives(wire::KeysRequest{k_id, {}, {}});
  check_survives(wire::SignalRequest{k_id, 64, some_once()});
  check_survives(wire::TakenRequest{k_id, some_once()});
  check_survives(wire::ResizeRequest{k_id, {1, 500}});
  check_survives(wire::EndRequest{k_id, wire::Cause::cancelled, milliseconds(2000)});
  check_survives(wire::EndRequest{k_id, wire::Cause::terminated, milliseconds(0)});
  CHECK_FALSE(wire::to_json(wire::InputRequest{k_id}).contains("paste"));
  CHECK_FALSE(wire::to_json(wire::InputRequest{k_id}).contains("once"));
}

TEST_CASE("messages: bad fields of input requests are named") {
  const json input = sent(wire::to_json(wire::InputRequest{k_id, true, true, some_once()}));
  check_required(input, reader_of<wire::InputRequest>(), {"process", "eof"});
  check_paths(input, reader_of<wire::InputRequest>(),
              {{"/eof", 1, "eof"},
               {"/paste", "yes", "paste"},
               {"/once", nullptr, "once"},
               {"/once/key", "short", "once.key"},
               {"/once/call", 5, "once.call"},
               {"/once/at", -1, "once.at"},
               {"/once/seen", {1, 2, 3}, "once.seen"}});
  const json keys = sent(wire::to_json(wire::KeysRequest{k_id, {"up"}, {}}));
  check_required(keys, reader_of<wire::KeysRequest>(), {"process", "keys"});
  check_paths(keys, reader_of<wire::KeysRequest>(), {{"/keys", "up", "keys"}, {"/keys/0", 5, "keys[0]"}});
  const json signal = sent(wire::to_json(wire::SignalRequest{k_id, 9, {}}));
  check_required(signal, reader_of<wire::SignalRequest>(), {"process", "signal"});
  check_paths(signal, reader_of<wire::SignalRequest>(),
              {{"/signal", 0, "signal"}, {"/signal", 65, "signal"}, {"/signal", "9", "signal"}});
  const json taken = sent(wire::to_json(wire::TakenRequest{k_id, some_once()}));
  check_required(taken, reader_of<wire::TakenRequest>(), {"process", "once"});
  const json resize = sent(wire::to_json(wire::ResizeRequest{k_id, {80, 24}}));
  check_required(resize, reader_of<wire::ResizeRequest>(), {"process", "terminal"});
  check_paths(resize, reader_of<wire::ResizeRequest>(), {{"/terminal/0", 0, "terminal[0]"}});
  const json end = sent(wire::to_json(wire::EndRequest{k_id, wire::Cause::cancelled, milliseconds(0)}));
  check_required(end, reader_of<wire::EndRequest>(), {"process", "cause", "graceMs"});
  check_paths(end, reader_of<wire::EndRequest>(), {{"/graceMs", -5, "graceMs"}});
}

TEST_CASE("messages: the answer to input is checked against the request") {
  const wire::InputAnswer answer{4, wire::InputAnswer::Keyed{true, 9, {1, 2}}};
  const json head = sent(wire::to_json(answer));
  const Field field(head);
  CHECK(wire::to_json(wire::InputAnswer::from_json(field, 4, true)) == wire::to_json(answer));
  CHECK_FALSE(wire::InputAnswer::from_json(field, 4, false).keyed);
  const Reader read = [](const Field& it) { (void)wire::InputAnswer::from_json(it, 4, true); };
  check_required(head, read, {"accepted", "before", "units", "seen"});
  check_paths(head, read,
              {{"/accepted", 5, "accepted"},
               {"/before", 0, "before"},
               {"/units", -1, "units"},
               {"/seen", {1, wire::k_max_stream_bytes + 1}, "seen[1]"}});
}

TEST_CASE("messages: session requests survive the round trip, bad fields are named") {
  check_survives(wire::CancelRequest{7});
  check_survives(wire::LineRequest{"/x", UINT64_MAX, 5, "key"});
  check_survives(wire::WatchRequest{"/x", -5, milliseconds(10), "/root"});
  check_survives(wire::WatchRequest{"/x", 5, milliseconds(10), ""});
  check_survives(wire::WatchAnswer{true});
  CHECK(wire::to_json(wire::PingRequest{}) == json{{"op", "ping"}});
  const json cancel = sent(wire::to_json(wire::CancelRequest{7}));
  check_required(cancel, reader_of<wire::CancelRequest>(), {"request"});
  check_paths(cancel, reader_of<wire::CancelRequest>(), {{"/request", "7", "request"}});
  const json line = sent(wire::to_json(wire::LineRequest{"/x", 1, 2, "key"}));
  check_required(line, reader_of<wire::LineRequest>(), {"path", "device", "inode", "key"});
  check_paths(line, reader_of<wire::LineRequest>(), {{"/inode", -1, "inode"}, {"/key", 5, "key"}});
  const json watch = sent(wire::to_json(wire::WatchRequest{"/x", 5, milliseconds(10), "/root"}));
  check_required(watch, reader_of<wire::WatchRequest>(), {"path", "modifiedAtMs", "timeoutMs"});
  check_paths(watch, reader_of<wire::WatchRequest>(), {{"/timeoutMs", -1, "timeoutMs"}, {"/root", 1, "root"}});
  check_required(json{{"changed", true}}, reader_of<wire::WatchAnswer>(), {"changed"});
}

TEST_CASE("messages: a greeting survives the round trip, bad fields are named") {
  const wire::Hello hello{"1.2.3", "x86_64", "/bin/bash", "/state", "/root", 1000, 17};
  const json head = sent(wire::greeting_of(hello));
  const auto read = wire::hello_from_greeting(head);
  REQUIRE(read);
  CHECK(wire::greeting_of(*read) == wire::greeting_of(hello));
  json bad = head;
  bad["hello"]["uid"] = -1;
  CHECK(wire::hello_from_greeting(bad).error().message == "Malformed message: hello.uid");
  CHECK(wire::hello_from_greeting(bad).error().code == ErrorCode::protocol_violation);
  bad["hello"]["protocol"] = 2;
  CHECK(wire::hello_from_greeting(bad).error().code == ErrorCode::agent_version);
  const Error error{ErrorCode::no_state_directory, "nowhere", "Mount one"};
  const auto fatal = wire::hello_from_greeting(sent(wire::fatal_greeting_of(error)));
  REQUIRE_FALSE(fatal);
  CHECK(fatal.error().code == error.code);
  CHECK(fatal.error().message == error.message);
  CHECK(fatal.error().next_step == error.next_step);
  CHECK(wire::hello_from_greeting({{"fatal", {{"code", "made_up"}}}}).error().message ==
        "Malformed message: fatal.code");
}
