#include <doctest/doctest.h>
#include <atomic>
#include <future>
#include <latch>
#include <map>
#include "cli/options.hpp"
#include "docker/address.hpp"
#include "mcp/conversation.hpp"
#include "sandbox/connection.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/output.hpp"
#include "unit/sandbox/fake_agent.hpp"
#include "util/log.hpp"
#include "util/text.hpp"
using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Sandbox;
using sandbox::Snapshot;
using tools::Cursor;
using tools::OutputRequest;

namespace {

Log& silent_log() {
  static Log log(-1, LogLevel::off, LogFormat::text);
  return log;
}

}  // namespace

TEST_CASE("C1 control characters are escaped in log lines") {
  CHECK(printable_line("a\xC2\x9B"
                       "31mred",
                       100)
            .find('\x9b') == std::string::npos);
}

TEST_CASE("an unterminated OSC does not eat the rest of the output") {
  CHECK(plain_terminal_text("a\x1b]oops\nline 2\nline 3\n").find("line 3") != std::string::npos);
}

TEST_CASE("an unfinished CSI does not eat a newline") {
  CHECK(plain_terminal_text("a\x1b[\nline 2\n") == "a\nline 2\n");
}

TEST_CASE("an answer to a read with impossible numbers is a violation") {
  for (const json& head :
       {json{{"offset", -1}, {"stream", {100, 100, 100}}}, json{{"offset", 10.5}, {"stream", {100, 100, 100}}},
        json{{"offset", 10}, {"stream", {1, 3, 2}}}, json{{"offset", 10}, {"stream", {-1, 3, 2}}},
        json{{"offset", 10}, {"stream", {3, 3, 3, 3}}}}) {
    CAPTURE(head);
    FakeContainer container([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, head, "abc"); });
    Sandbox sandbox(container, {}, silent_log());
    const auto slice = sandbox.read("proc_1_a", sandbox::Stream::out, 10, 100);
    CHECK_FALSE(slice);
  }
}

TEST_CASE("the state of another process than asked for is a violation") {
  FakeContainer container([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state_of("proc_1_other")}, {"carried", false}});
  });
  Sandbox sandbox(container, {}, silent_log());
  CHECK_FALSE(sandbox.wait("proc_1_a", milliseconds(0), std::nullopt, {}));
}

TEST_CASE("a violation in an answer drops the connection") {
  FakeContainer container([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", 5}, {"carried", false}});
  });
  Sandbox sandbox(container, {}, silent_log());
  CHECK_FALSE(sandbox.wait("proc_1_a", milliseconds(0), std::nullopt, {}));
  CHECK_FALSE(sandbox.wait("proc_1_a", milliseconds(0), std::nullopt, {}));
  CHECK(container.opened() == 2);
}

TEST_CASE("a greeting whose numbers are none is refused") {
  for (const json& p : {json(true), json(1.9)}) {
    json head = hello_head();
    head["hello"]["protocol"] = p;
    Streams s = make_streams();
    s.agent.say(greeting(head));
    CHECK_FALSE(sandbox::Connection::open(std::move(s.host), Deadline::after(seconds(5))));
  }
  json head = hello_head();
  head["hello"]["uid"] = -1;
  Streams s = make_streams();
  s.agent.say(greeting(head));
  CHECK_FALSE(sandbox::Connection::open(std::move(s.host), Deadline::after(seconds(5))));
}

TEST_CASE("a backlog beyond 64 MiB is refused") {
  Streams s = make_streams();
  s.agent.greet();  // and never reads
  auto c = sandbox::Connection::open(std::move(s.host), Deadline::after(seconds(5)));
  REQUIRE(c);
  const std::string body(8 * 1024 * 1024, 'x');
  std::string said;
  for (int i = 0; i < 12; ++i) {  // 96 MiB
    said = (*c)->call({{"op", "start"}}, body, Deadline::after(milliseconds(30)), {}).error().message;
  }
  CHECK(said.find("too many requests wait") != std::string::npos);
}

TEST_CASE("reading on gets past a character that the gap cut in two") {
  const std::string out = std::string(10, 'h') + "\xE2" + std::string(50, '-') + "tail";
  FakeContainer container([&](FakeAgent& agent, const wire::Frame& request) {
    std::uint64_t from = request.head.at("offset");
    if (from >= 11 && from < 61)
      from = 61;
    const std::uint64_t end = from < 11 ? 11 : out.size();
    agent.answer(request, {{"offset", from}, {"stream", {65, 11, 61}}},
                 out.substr(from, std::min<std::uint64_t>(end - from, request.head.at("max"))));
  });
  Sandbox sandbox(container, {}, silent_log());
  Snapshot snapshot;
  snapshot.state.id = "proc_1_a";
  snapshot.state.phase = wire::Phase::closed;
  snapshot.state.out = {out.size(), 11, 61};
  OutputRequest request;
  request.since = Cursor{0, 0};
  for (int i = 0; i < 5; ++i) {
    auto o = tools::collect_output(sandbox, snapshot, request);
    REQUIRE(o);
    request.since = o->cursor();
  }
  CHECK(request.since->out == out.size());
}

TEST_CASE("a running process's output keeps half a character for later") {
  FakeContainer container([](FakeAgent&, const wire::Frame&) {});
  Sandbox sandbox(container, {}, silent_log());
  Snapshot snapshot;
  snapshot.state.id = "proc_1_a";
  snapshot.state.out = {5, 5, 5};
  snapshot.whole = true;
  snapshot.out = "abc\xE2\x82";
  auto o = tools::collect_output(sandbox, snapshot, {});
  REQUIRE(o);
  CHECK(o->out.replaced == 0);
  CHECK(o->out.next == 3);
  OutputRequest tail;
  tail.tail_lines = 5;
  o = tools::collect_output(sandbox, snapshot, tail);
  CHECK(o->out.replaced == 0);
  CHECK(o->out.next == 3);
}

TEST_CASE("last lines cut by the budget begin at a character and say so") {
  FakeContainer container([](FakeAgent&, const wire::Frame&) {});
  Sandbox sandbox(container, {}, silent_log());
  std::string line;
  for (int i = 0; i < 100; ++i)
    line += "€";
  line += "x";
  Snapshot snapshot;
  snapshot.state.id = "proc_1_a";
  snapshot.state.phase = wire::Phase::closed;
  snapshot.state.out = {line.size(), line.size(), line.size()};
  snapshot.whole = true;
  snapshot.out = line;
  OutputRequest tail;
  tail.tail_lines = 1;
  tail.max_bytes = 100;
  for (std::size_t max = 100; max < 103; ++max) {
    tail.max_bytes = max;
    auto o = tools::collect_output(sandbox, snapshot, tail);
    CHECK(o->out.replaced == 0);
    CHECK(o->out.text.find('[') != std::string::npos);
  }
}
namespace {

struct Machine {
  std::map<std::string, std::string> environment, files;
  Result<cli::Invocation> run(const std::vector<std::string>& a) {
    return cli::parse_command_line(
        a, {[this](const std::string& n) { return v(environment, n); },
            [this](const std::string& p) -> Result<std::optional<std::string>> { return v(files, p); }});
  }
  static std::optional<std::string> v(const std::map<std::string, std::string>& m, const std::string& k) {
    auto f = m.find(k);
    return f == m.end() ? std::nullopt : std::optional(f->second);
  }
};

}  // namespace

TEST_CASE("--no-start=false does not forbid starting") {
  const auto i = Machine().run({"--no-start=false"});
  CHECK((!i || i->options.container.may_start));
}

TEST_CASE("a config value that is a list, an object or null is refused") {
  for (const char* v : {"null", "[\"x\"]", "{}"}) {
    CAPTURE(v);
    Machine m;
    m.environment["HOME"] = "/h";
    m.files["/h/.config/dockbridge/config.json"] = std::string("{\"container-name\": ") + v + "}";
    CHECK_FALSE(m.run({}));
  }
}

TEST_CASE("an empty XDG_CONFIG_HOME counts as none") {
  Machine m;
  m.environment["HOME"] = "/h";
  m.environment["XDG_CONFIG_HOME"] = "";
  m.files["/h/.config/dockbridge/config.json"] = R"({"container-name":"box"})";
  CHECK(m.run({})->options.container.name == "box");
}

TEST_CASE("a short failure text is told even if the stream does not end") {
  Streams s = make_streams();
  s.agent.say("exec failed");
  auto c = sandbox::Connection::open(std::move(s.host), Deadline::after(milliseconds(50)));
  REQUIRE_FALSE(c);
  CHECK(c.error().message.find("exec failed") != std::string::npos);
}

namespace {

/// A stream that hands out exactly these pieces, one for each read, and then has nothing more.
class Pieces : public sandbox::ByteStream {
 public:
  explicit Pieces(std::vector<std::string> pieces) : m_pieces(std::move(pieces)) {}
  [[nodiscard]] int read_fd() const override { return -1; }
  [[nodiscard]] int write_fd() const override { return -1; }
  Result<std::size_t> read(std::span<char> buffer) override {
    if (m_next == m_pieces.size()) {
      return 0;
    }
    const std::string& piece = m_pieces[m_next++];
    REQUIRE(piece.size() <= buffer.size());
    return piece.copy(buffer.data(), piece.size());
  }
  Result<std::size_t> write(std::string_view) override { return 0; }
  [[nodiscard]] std::string complaint() override { return {}; }

 private:
  std::vector<std::string> m_pieces;
  std::size_t m_next = 0;
};

}  // namespace

TEST_CASE("a large greeting may come in pieces") {
  json head = hello_head();
  head["hello"]["version"] = std::string(5000, 'v');
  const std::string whole = greeting(head);
  auto stream = std::make_unique<Pieces>(std::vector{whole.substr(0, 18), whole.substr(18, 4096), whole.substr(4114)});
  CHECK(sandbox::Connection::open(std::move(stream), Deadline::after(seconds(5))).has_value());
}

TEST_CASE("a notification with positional params is not answered") {
  auto m = mcp::to_message(json::parse(R"({"jsonrpc":"2.0","method":"notifications/x","params":[1]})"));
  CHECK_FALSE(std::holds_alternative<mcp::Malformed>(m));
}

TEST_CASE("the quotes of a log field cannot be broken out of") {
  int p[2];
  REQUIRE(pipe(p) == 0);
  Log log(p[1], LogLevel::info, LogFormat::text);
  log.info("call", {{"rationale", "x\\\" outcome=ok"}});
  char buf[500];
  auto n = read(p[0], buf, sizeof buf);
  CHECK(std::string(buf, static_cast<std::size_t>(n)).find("\"x\\\\\" outcome") == std::string::npos);
}

TEST_CASE("no progress is sent after a cancel") {
  WorkerPool pool(2);
  std::latch arrived(1), cancelled(1);
  mcp::Tool t;
  t.name = "p";
  t.input_schema = {{"type", "object"}};
  t.output_schema = {{"type", "object"}};
  t.call = [&](const mcp::json&, const mcp::CallContext& c) {
    arrived.count_down();
    cancelled.wait();
    c.report_progress("late");
    return mcp::ToolResult{"", mcp::ordered_json::object(), false, ""};
  };
  mcp::Server server({"a", "b", "c", "d"}, {t});
  std::atomic<int> sent{0};
  mcp::Conversation conv(server, pool, silent_log(), "o", [&](const json&) { ++sent; });
  conv.receive(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"p","_meta":{"progressToken":1}}})");
  arrived.wait();
  conv.receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  cancelled.count_down();
  REQUIRE(conv.wait_for_calls(Deadline::after(seconds(5))));
  CHECK(sent == 0);
}

TEST_CASE("an empty DOCKER_CONFIG counts as none") {
  std::string dir = "/tmp/cfgtest.XXXXXX";
  REQUIRE(mkdtemp(dir.data()));
  REQUIRE(chdir(dir.c_str()) == 0);
  REQUIRE(system("echo '{\"currentContext\":\"cwd\"}' > config.json") == 0);
  auto a = docker::find_engine(
      {"", [](const std::string& n) { return n == "DOCKER_CONFIG" ? std::optional<std::string>("") : std::nullopt; },
       dir + "/home"});
  CHECK((a || a.error().code != "no_such_context"));
}

TEST_CASE("bytes that are overwritten while they are read count as not kept") {
  const std::string out = std::string(1000, 'h') + std::string(5000, '-') + std::string(1000, 't');
  FakeContainer container([&](FakeAgent& agent, const wire::Frame& request) {
    std::uint64_t from = request.head.at("offset");
    if (from >= 1000 && from < 6400)
      from = 6400;
    const std::uint64_t end = from < 1000 ? 1000 : out.size();
    agent.answer(request, {{"offset", from}, {"stream", {7000, 1000, 6400}}},
                 out.substr(from, std::min<std::uint64_t>(end - from, request.head.at("max"))));
  });
  Sandbox sandbox(container, {}, silent_log());
  Snapshot snapshot;
  snapshot.state.id = "proc_1_a";
  snapshot.state.phase = wire::Phase::running;
  snapshot.state.out = {7000, 1000, 6000};
  OutputRequest request;
  request.max_bytes = 10000;
  auto o = tools::collect_output(sandbox, snapshot, request);
  REQUIRE(o);
  CHECK(o->out.left_out == 5400);
  CHECK(o->out.not_kept == 5400);
}
