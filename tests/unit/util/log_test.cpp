#include "util/log.hpp"
#include "support/field.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "util/fd.hpp"

using namespace dockbridge;
using dockbridge::test::field;
using nlohmann::json;

namespace {

/// The output of a log with this level and format.
std::string written(LogLevel level, LogFormat format, const std::function<void(Log& log)>& use) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  Log log(write_end.get(), level, format);
  use(log);
  std::string text(64 * 1024, '\0');
  const ssize_t got = ::read(read_end.get(), text.data(), text.size());
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

/// A line in text format without its time, whose format is checked.
std::string after_time(const std::string& line) {
  const std::string shape = "dddd-dd-ddTdd:dd:dd.dddZ ";
  REQUIRE(line.size() > shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool digit = line[i] >= '0' && line[i] <= '9';
    REQUIRE((shape[i] == 'd' ? digit : line[i] == shape[i]));
  }
  return line.substr(shape.size());
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    REQUIRE(end != std::string::npos);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool has_control_character(const std::string& line) {
  for (const char c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      return true;
    }
  }
  return false;
}

/// All control characters, and bytes that are not UTF-8.
std::string hostile_value() {
  std::string value;
  for (int c = 0; c < 0x20; ++c) {
    value.push_back(static_cast<char>(c));
  }
  return value + "\x7f\xff\xc3";
}

}  // namespace

TEST_CASE("log: a text line is time, level, message and fields") {
  const std::string text = written(LogLevel::info, LogFormat::text, [](Log& log) {
    log.info("connected", {{"container", "box"}, {"ms", "17"}});
  });
  CHECK(after_time(text) == "info  connected container=box ms=17\n");
}

TEST_CASE("log: a value that is not one plain word is quoted") {
  const std::string text = written(LogLevel::info, LogFormat::text, [](Log& log) {
    log.info("m", {{"a", ""}, {"b", "two words"}, {"c", "x=y"}, {"d", "say \"hi\""}, {"e", "ä"}});
  });
  CHECK(after_time(text) == "info  m a=\"\" b=\"two words\" c=\"x=y\" d=\"say \\\"hi\\\"\" e=ä\n");
}

TEST_CASE("log: a JSON line is one object with the same fields") {
  const std::string text = written(LogLevel::info, LogFormat::json, [](Log& log) {
    log.warn("lost the agent", {{"reason", "the \"stream\" ended\n"}});
  });
  REQUIRE(lines_of(text).size() == 1);
  const json line = json::parse(text);
  CHECK(line.size() == 4);
  CHECK(field(line, "level") == "warn");
  CHECK(field(line, "message") == "lost the agent");
  CHECK(field(line, "reason") == "the \"stream\" ended\\n");
  CHECK(after_time(field(line, "time").get<std::string>() + " x") == "x");
}

TEST_CASE("log: messages below the level are dropped") {
  const auto log_all = [](Log& log) {
    log.debug("d");
    log.info("i");
    log.warn("w");
    log.error("e");
  };
  const std::vector<std::pair<LogLevel, std::vector<std::string>>> cases = {
      {LogLevel::debug, {"debug", "info", "warn", "error"}},
      {LogLevel::info, {"info", "warn", "error"}},
      {LogLevel::warn, {"warn", "error"}},
      {LogLevel::error, {"error"}},
      {LogLevel::off, {}},
  };
  for (const auto& [level, expected] : cases) {
    std::vector<std::string> seen;
    for (const std::string& line : lines_of(written(level, LogFormat::json, log_all))) {
      seen.push_back(field(json::parse(line), "level"));
    }
    CHECK(seen == expected);
  }
}

TEST_CASE("log: control characters and line breaks are escaped") {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string text = written(LogLevel::info, format, [](Log& log) {
      log.info(hostile_value(), {{"value", hostile_value()}});
    });
    const auto lines = lines_of(text);
    REQUIRE(lines.size() == 1);
    CHECK_FALSE(has_control_character(lines[0]));
    if (format == LogFormat::json) {
      CHECK(json::accept(lines[0]));
    }
  }
}

TEST_CASE("log: a very long value is cut") {
  const std::string text = written(LogLevel::info, LogFormat::text, [](Log& log) {
    log.info("m", {{"v", std::string(100'000, 'x')}});
  });
  CHECK(text.size() < 2200);
  CHECK(text.ends_with("x…\n"));
}

TEST_CASE("log: lines of several threads do not interleave") {
  constexpr int k_threads = 4;
  constexpr int k_lines = 50;
  const std::string text = written(LogLevel::info, LogFormat::json, [&](Log& log) {
    std::vector<std::thread> threads;
    for (int t = 0; t < k_threads; ++t) {
      threads.emplace_back([&log] {
        for (int i = 0; i < k_lines; ++i) {
          log.info("a message of some length", {{"number", std::to_string(i)}});
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
  const auto lines = lines_of(text);
  CHECK(lines.size() == k_threads * k_lines);
  for (const std::string& line : lines) {
    CHECK(json::accept(line));
  }
}

TEST_CASE("log: a failed write is ignored") {
  Log log(-1, LogLevel::info, LogFormat::text);
  log.error("nobody hears this");
}

TEST_CASE("log: a quote in a value is escaped") {
  const std::string line = written(LogLevel::info, LogFormat::text, [](Log& log) {
    log.info("call", {{"rationale", "x\\\" outcome=ok"}});
  });
  CHECK(line.find("rationale=") != std::string::npos);
  CHECK(line.find("\"x\\\\\" outcome") == std::string::npos);
}
