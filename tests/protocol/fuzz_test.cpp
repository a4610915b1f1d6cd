#include <doctest/doctest.h>

#include <random>

#include "support/field.hpp"
#include "support/full.hpp"
#include "support/program.hpp"

using namespace dockbridge::test;

namespace {

/// Almost valid messages: valid ones with bytes changed, removed, doubled or spliced.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : m_random(seed) {}

  std::string next() {
    std::string text = pick(m_seeds);
    const int changes = number(1, 6);
    for (int i = 0; i < changes && !text.empty(); ++i) {
      const auto at = static_cast<std::size_t>(number(0, static_cast<int>(text.size()) - 1));
      switch (number(0, 4)) {
        case 0:
          text[at] = static_cast<char>(number(0, 255));
          break;
        case 1:
          text.erase(at, static_cast<std::size_t>(number(1, 20)));
          break;
        case 2:
          text.insert(at, text.substr(at, static_cast<std::size_t>(number(1, 30))));
          break;
        case 3:
          text.insert(at, pick(m_tokens));
          break;
        default: {
          const std::string& other = pick(m_seeds);
          text = text.substr(0, at) + other.substr(std::min(at, other.size()));
        }
      }
    }
    std::erase(text, '\n');
    return text;
  }

 private:
  int number(int least, int most) { return std::uniform_int_distribution(least, most)(m_random); }
  const std::string& pick(const std::vector<std::string>& from) {
    return from[static_cast<std::size_t>(number(0, static_cast<int>(from.size()) - 1))];
  }

  std::mt19937 m_random;
  std::vector<std::string> m_seeds = {
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}})",
      R"({"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}})",
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_command","arguments":{"command":"true","rationale":"x","env":{"A":"b"},"maxWaitTime":3},"_meta":{"progressToken":7}}})",
      R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"check_process","arguments":{"processId":"proc_1_a","since":"1:2","tail":3,"rationale":"x"}}})",
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})",
      R"([{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"server/discover"}])"};
  std::vector<std::string> m_tokens = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       "\\u0000",
                                       "\\ud800",
                                       "null",
                                       "-1",
                                       "1e999",
                                       "99999999999999999999",
                                       ",",
                                       ":",
                                       "\xff",
                                       std::string(1, '\0'),
                                       "true"};
};

}  // namespace

TEST_CASE("fuzz: the server answers after any lines and stays small") {
  const int lines = full_run() ? 200'000 : 5'000;
  Server server({"--docker-host", "unix:///nonexistent/docker.sock", "--log-level", "off"});
  Mutator mutator(20261116);
  for (int i = 0; i < lines; ++i) {
    server.send_raw(mutator.next() + "\n");
    // A valid request: its answer shows that the server survived every line before it.
    if (i % 50 == 49) {
      const std::string id = "still-there-" + std::to_string(i);
      server.send({{"jsonrpc", "2.0"}, {"id", id}, {"method", "ping"}});
      CHECK(field(server.receive_answer(id), "result") == json::object());
      server.seen.clear();
    }
  }
}
