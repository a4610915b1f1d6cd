#include "cli/options.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace dockbridge;
using cli::Command;
using cli::Invocation;
using cli::Options;
using cli::Via;

namespace {

/// A machine with an environment and files.
struct Machine {
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files;

  [[nodiscard]] Result<Invocation> run(const std::vector<std::string>& arguments) const {
    return cli::parse_command_line(arguments, {[this](const std::string& name) { return value(environment, name); },
                                               [this](const std::string& path) -> Result<std::optional<std::string>> {
                                                 return value(files, path);
                                               }});
  }
  [[nodiscard]] Options options(const std::vector<std::string>& arguments = {}) const {
    const auto invocation = run(arguments);
    REQUIRE(invocation);
    return invocation->options;
  }
  [[nodiscard]] Error error(const std::vector<std::string>& arguments = {}) const {
    const auto invocation = run(arguments);
    REQUIRE_FALSE(invocation);
    return invocation.error();
  }

 private:
  static std::optional<std::string> value(const std::map<std::string, std::string>& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  }
};

Machine with_config(const std::string& content) {
  Machine machine;
  machine.environment["HOME"] = "/home/me";
  machine.files["/home/me/.config/dockbridge/config.json"] = content;
  return machine;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct BadValue {
  std::string setting;
  std::string variable;
  std::string value;
  std::string accepted;
};

const std::vector<BadValue>& bad_values() {
  static const std::vector<BadValue> all = {
      {"container-name", "DOCKBRIDGE_CONTAINER_NAME", "", "a container's name or id"},
      {"via", "DOCKBRIDGE_VIA", "ssh", "one of: engine, exec"},
      {"docker-host", "DOCKBRIDGE_DOCKER_HOST", "", "an address like unix:///var/run/docker.sock"},
      {"docker-command", "DOCKBRIDGE_DOCKER_COMMAND", "", "a program such as docker or podman"},
      {"workdir", "DOCKBRIDGE_WORKDIR", "app", "an absolute path in the container"},
      {"image", "DOCKBRIDGE_IMAGE", "", "an image's name"},
      {"workspace", "DOCKBRIDGE_WORKSPACE", "./here", "an absolute path on the host"},
      {"inactivity-timeout", "DOCKBRIDGE_INACTIVITY_TIMEOUT", "0", "a number of seconds from 0.1 to 3600"},
      {"load-stretch", "DOCKBRIDGE_LOAD_STRETCH", "0.5", "a number from 1 to 100"},
      {"max-wait", "DOCKBRIDGE_MAX_WAIT", "10m", "a number of seconds from 1 to 86400"},
      {"client-timeout", "DOCKBRIDGE_CLIENT_TIMEOUT", "nan", "a number of seconds from 1 to 86400"},
      {"max-runtime", "DOCKBRIDGE_MAX_RUNTIME", "-1", "a number of seconds from 0 to 2592000"},
      {"rationale", "DOCKBRIDGE_RATIONALE", "never", "one of: optional, required"},
      {"edit-guard", "DOCKBRIDGE_EDIT_GUARD", "none", "one of: match, read"},
      {"log-level", "DOCKBRIDGE_LOG_LEVEL", "verbose", "one of: debug, error, info, off, warn"},
      {"log-format", "DOCKBRIDGE_LOG_FORMAT", "xml", "one of: json, text"},
  };
  return all;
}

}  // namespace

TEST_CASE("options: all values have defaults") {
  const auto invocation = Machine().run({});
  REQUIRE(invocation);
  CHECK(invocation->command == Command::serve);
  const Options& options = invocation->options;
  CHECK(options.container.name == "mcp-container");
  CHECK(options.container.image == "dockbridge-sandbox:latest");
  CHECK(options.container.workdir == "/app");
  CHECK(options.container.workspace.empty());
  CHECK(options.container.may_start);
  CHECK(options.container.may_create);
  CHECK(options.container.may_go_direct);
  CHECK(options.via == Via::engine);
  CHECK(options.docker_host.empty());
  CHECK(options.docker_command == "docker");
  CHECK(options.tools.inactivity_timeout == seconds(20));
  CHECK(options.tools.load_stretch == 1);
  CHECK(options.tools.max_wait == seconds(600));
  CHECK(options.tools.client_timeout == seconds(50));
  CHECK(options.tools.max_runtime == seconds(0));
  CHECK(options.tools.rationale_required);
  CHECK_FALSE(options.tools.match_is_read);
  CHECK(options.log_level == LogLevel::info);
  CHECK(options.log_format == LogFormat::text);
}

TEST_CASE("options: each can be set by flag, variable and config file") {
  const auto check = [](const Options& options) {
    CHECK(options.container.name == "box");
    CHECK(options.container.image == "img:1");
    CHECK(options.container.workdir == "/work");
    CHECK(options.container.workspace == "/home/me/ws");
    CHECK_FALSE(options.container.may_start);
    CHECK_FALSE(options.container.may_create);
    CHECK_FALSE(options.container.may_go_direct);
    CHECK(options.via == Via::exec);
    CHECK(options.docker_host == "tcp://h:1");
    CHECK(options.docker_command == "podman");
    CHECK(options.tools.inactivity_timeout == milliseconds(2500));
    CHECK(options.tools.load_stretch == 1.5);
    CHECK(options.tools.max_wait == seconds(60));
    CHECK(options.tools.client_timeout == seconds(30));
    CHECK(options.tools.max_runtime == seconds(90));
    CHECK_FALSE(options.tools.rationale_required);
    CHECK(options.tools.match_is_read);
    CHECK(options.log_level == LogLevel::warn);
    CHECK(options.log_format == LogFormat::json);
  };
  check(Machine().options({"--container-name",
                           "box",
                           "--image",
                           "img:1",
                           "--workdir",
                           "/work",
                           "--workspace",
                           "/home/me/ws",
                           "--no-start",
                           "--no-create",
                           "--no-direct-line",
                           "--via",
                           "exec",
                           "--docker-host",
                           "tcp://h:1",
                           "--docker-command",
                           "podman",
                           "--inactivity-timeout",
                           "2.5",
                           "--load-stretch",
                           "1.5",
                           "--max-wait",
                           "60",
                           "--client-timeout",
                           "30",
                           "--max-runtime",
                           "90",
                           "--rationale",
                           "optional",
                           "--edit-guard",
                           "match",
                           "--log-level",
                           "warn",
                           "--log-format",
                           "json"}));
  Machine variables;
  variables.environment = {{"DOCKBRIDGE_CONTAINER_NAME", "box"},
                           {"DOCKBRIDGE_IMAGE", "img:1"},
                           {"DOCKBRIDGE_WORKDIR", "/work"},
                           {"DOCKBRIDGE_WORKSPACE", "/home/me/ws"},
                           {"DOCKBRIDGE_NO_START", "1"},
                           {"DOCKBRIDGE_NO_CREATE", "true"},
                           {"DOCKBRIDGE_NO_DIRECT_LINE", "true"},
                           {"DOCKBRIDGE_VIA", "exec"},
                           {"DOCKBRIDGE_DOCKER_HOST", "tcp://h:1"},
                           {"DOCKBRIDGE_DOCKER_COMMAND", "podman"},
                           {"DOCKBRIDGE_INACTIVITY_TIMEOUT", "2.5"},
                           {"DOCKBRIDGE_LOAD_STRETCH", "1.5"},
                           {"DOCKBRIDGE_MAX_WAIT", "60"},
                           {"DOCKBRIDGE_CLIENT_TIMEOUT", "30"},
                           {"DOCKBRIDGE_MAX_RUNTIME", "90"},
                           {"DOCKBRIDGE_RATIONALE", "optional"},
                           {"DOCKBRIDGE_EDIT_GUARD", "match"},
                           {"DOCKBRIDGE_LOG_LEVEL", "warn"},
                           {"DOCKBRIDGE_LOG_FORMAT", "json"}};
  check(variables.options());
  check(with_config(R"({"container-name": "box", "image": "img:1", "workdir": "/work", "workspace": "/home/me/ws",
                        "no-start": true, "no-create": true, "no-direct-line": true, "via": "exec", "docker-host": "tcp://h:1",
                        "docker-command": "podman", "inactivity-timeout": 2.5, "load-stretch": 1.5, "max-wait": 60, "client-timeout": "30",
                        "max-runtime": 90, "rationale": "optional", "edit-guard": "match", "log-level": "warn", "log-format": "json"})")
            .options());
}

TEST_CASE("options: flags precede the environment, which precedes the config file") {
  Machine machine = with_config(R"({"container-name": "of-config", "log-level": "debug", "max-wait": 1})");
  CHECK(machine.options().container.name == "of-config");
  machine.environment["DOCKBRIDGE_CONTAINER_NAME"] = "of-environment";
  CHECK(machine.options().container.name == "of-environment");
  CHECK(machine.options({"-c", "of-flag"}).container.name == "of-flag");
  CHECK(machine.options({"--container-name=of-flag"}).container.name == "of-flag");
  CHECK(machine.options({"-c", "of-flag"}).log_level == LogLevel::debug);  // each option is independent
  machine.environment["DOCKBRIDGE_LOG_LEVEL"] = "error";
  CHECK(machine.options({"--max-wait", "2"}).log_level == LogLevel::error);
  CHECK(machine.options({"--max-wait", "2"}).tools.max_wait == seconds(2));
}

TEST_CASE("options: --compat takes one server or both, and repl shortens the idle limit of sessions") {
  const Machine machine;
  using tools::Compat;
  CHECK(machine.options().tools.compat.empty());
  CHECK(machine.options({"--compat", "repl"}).tools.compat == std::set{Compat::repl});
  CHECK(machine.options({"--compat", "repl,coderunner"}).tools.compat == std::set{Compat::repl, Compat::coderunner});
  CHECK(contains(machine.error({"--compat", "jupyter"}).next_step, "repl, coderunner"));
  CHECK(machine.options({"--compat", "coderunner"}).tools.session_idle_limit == seconds(3600));
  CHECK(machine.options({"--compat", "repl"}).tools.session_idle_limit == seconds(300));
  CHECK(machine.options({"--compat", "repl", "--session-idle-limit", "3600"}).tools.session_idle_limit ==
        seconds(3600));
}

TEST_CASE("options: the environment can reset a switch of the config file") {
  Machine machine = with_config(R"({"no-start": true})");
  CHECK_FALSE(machine.options().container.may_start);
  machine.environment["DOCKBRIDGE_NO_START"] = "0";
  CHECK(machine.options().container.may_start);
  CHECK_FALSE(machine.options({"--no-start"}).container.may_start);
}

TEST_CASE("options: of several --client-wait rows for a client the last counts") {
  Machine machine = with_config(R"({"client-wait": "codex-mcp-client=1,a*=2.5"})");
  machine.environment["DOCKBRIDGE_CLIENT_WAIT"] = "codex-mcp-client=2";
  const auto rows =
      machine.options({"--client-wait", "b=c=7", "--client-wait", "codex-mcp-client=3"}).tools.client_waits;
  CHECK(tools::find_client_wait(rows, "codex-mcp-client") == seconds(3));
  CHECK(tools::find_client_wait(rows, "abc") == milliseconds(2500));
  CHECK(tools::find_client_wait(rows, "b=c") == seconds(7));
  for (const char* value : {"codex", "=5", "a=", "a=0", "a=x", "a=5,", "a=86401"}) {
    CAPTURE(value);
    CHECK(contains(Machine().error({"--client-wait", value}).next_step, "NAME=SECONDS"));
  }
}

TEST_CASE("options: the error of a flag names value, source and accepted values") {
  for (const BadValue& bad : bad_values()) {
    CAPTURE(bad.setting);
    const Error error = Machine().error({"--" + bad.setting + "=" + bad.value});
    CHECK(error.code == ErrorCode::bad_option);
    if (!bad.value.empty()) {  // CLI11 rejects an empty one with its own text
      CHECK(error.message ==
            "Not a valid " + bad.setting + ": '" + bad.value + "' (from the flag --" + bad.setting + ")");
      CHECK(error.next_step.starts_with("Accepted: " + bad.accepted));
    }
  }
}

TEST_CASE("options: the error of a variable names value, source and accepted values") {
  for (const BadValue& bad : bad_values()) {
    CAPTURE(bad.setting);
    Machine machine;
    machine.environment[bad.variable] = bad.value;
    const Error error = machine.error();
    CHECK(error.code == ErrorCode::bad_option);
    CHECK(error.message ==
          "Not a valid " + bad.setting + ": '" + bad.value + "' (from the environment variable " + bad.variable + ")");
    CHECK(error.next_step.starts_with("Accepted: " + bad.accepted));
  }
}

TEST_CASE("options: the error of a config value names value, file and accepted values") {
  for (const BadValue& bad : bad_values()) {
    CAPTURE(bad.setting);
    const Error error = with_config("{\"" + bad.setting + "\": \"" + bad.value + "\"}").error();
    CHECK(error.code == ErrorCode::bad_option);
    CHECK(error.message ==
          "Not a valid " + bad.setting + ": '" + bad.value + "' (from /home/me/.config/dockbridge/config.json)");
    CHECK(error.next_step.starts_with("Accepted: " + bad.accepted));
  }
}

TEST_CASE("options: a bad value is an error even if another source overrides it") {
  Machine machine = with_config(R"({"log-level": "loud"})");
  CHECK(contains(machine.error({"--log-level", "warn"}).message, "'loud'"));
}

TEST_CASE("options: switches accept only true and false") {
  for (const std::string value : {"yes", "", "2", "TRUE"}) {
    Machine machine;
    machine.environment["DOCKBRIDGE_NO_CREATE"] = value;
    CHECK(contains(machine.error().next_step, "one of: 0, 1, false, true"));
  }
}

TEST_CASE("options: a number with trailing text is rejected") {
  for (const std::string value : {"", " 5", "5 ", "5s", "0x5", "1e99", "inf", "nan", "--5", "86401", "0.99"}) {
    CAPTURE(value);
    Machine machine;
    machine.environment["DOCKBRIDGE_MAX_WAIT"] = value;
    CHECK(machine.error().code == ErrorCode::bad_option);
  }
  for (const auto& [value, expected] : {std::pair{"1", 1000}, {"86400", 86'400'000}, {"1e2", 100'000}, {"1.5", 1500}}) {
    Machine machine;
    machine.environment["DOCKBRIDGE_MAX_WAIT"] = value;
    CHECK(machine.options().tools.max_wait == milliseconds(expected));
  }
}

TEST_CASE("options: an unknown config key is rejected with the known ones") {
  const Error error = with_config(R"({"container": "box"})").error();
  CHECK(error.code == ErrorCode::bad_config);
  CHECK(error.message == "Unknown setting 'container' (from /home/me/.config/dockbridge/config.json)");
  CHECK(contains(error.next_step, "container-name"));
  CHECK(contains(error.next_step, "log-format"));
}

TEST_CASE("options: a config file may have comments") {
  CHECK(with_config("// mine\n{\n  /* which */ \"container-name\": \"box\" // this one\n}").options().container.name ==
        "box");
}

TEST_CASE("options: a config file that is not an object is rejected by name") {
  for (const std::string content : {"", "{", "[]", "null", "container-name: box", "{\"via\": \"exec\",}"}) {
    CAPTURE(content);
    const Error error = with_config(content).error();
    CHECK(error.code == ErrorCode::bad_config);
    CHECK(contains(error.message, "Not a JSON object: /home/me/.config/dockbridge/config.json"));
  }
}

TEST_CASE("options: the config file is named by flag, variable or default path") {
  Machine machine = with_config(R"({"container-name": "usual"})");
  machine.files["/xdg/dockbridge/config.json"] = R"({"container-name": "xdg"})";
  machine.files["/by/variable.json"] = R"({"container-name": "variable"})";
  machine.files["/by/flag.json"] = R"({"container-name": "flag"})";
  CHECK(machine.options().container.name == "usual");
  machine.environment["XDG_CONFIG_HOME"] = "/xdg";
  CHECK(machine.options().container.name == "xdg");
  machine.environment["DOCKBRIDGE_CONFIG"] = "/by/variable.json";
  CHECK(machine.options().container.name == "variable");
  CHECK(machine.options({"--config", "/by/flag.json"}).container.name == "flag");
}

TEST_CASE("options: only the default config file may be missing") {
  Machine machine;
  machine.environment["HOME"] = "/home/me";
  CHECK(machine.options().container.name == "mcp-container");
  const Error by_flag = machine.error({"--config", "/no/such.json"});
  CHECK(by_flag.code == ErrorCode::bad_config);
  CHECK(contains(by_flag.message, "/no/such.json"));
  machine.environment["DOCKBRIDGE_CONFIG"] = "/no/other.json";
  CHECK(contains(machine.error().message, "/no/other.json"));
}

TEST_CASE("options: an unreadable config file is an error") {
  const auto invocation = cli::parse_command_line(
      {}, {[](const std::string& name) { return name == "HOME" ? std::optional<std::string>("/root") : std::nullopt; },
           [](const std::string&) -> Result<std::optional<std::string>> {
             return fail(ErrorCode::io_error, "open config.json: Permission denied");
           }});
  REQUIRE_FALSE(invocation);
  CHECK(invocation.error().code == ErrorCode::bad_config);
  CHECK(contains(invocation.error().message, "Permission denied"));
}

TEST_CASE("options: options may precede or follow a subcommand") {
  CHECK(Machine().run({"serve"})->command == Command::serve);
  CHECK(Machine().run({"doctor"})->command == Command::doctor);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-c", "box", "doctor"}, std::vector<std::string>{"doctor", "-c", "box"}}) {
    const auto invocation = Machine().run(arguments);
    REQUIRE(invocation);
    CHECK(invocation->command == Command::doctor);
    CHECK(invocation->options.container.name == "box");
  }
}

TEST_CASE("options: call takes a tool and its arguments unchanged") {
  for (const std::string arguments : {"{}", R"({"command": "echo 'a b' \"c\" \\ $HOME, [1,2]"})", "[1, 2]", "a,b"}) {
    CAPTURE(arguments);
    for (const std::vector<std::string>& line :
         {std::vector<std::string>{"call", "execute_command", arguments, "-c", "box"},
          std::vector<std::string>{"call", "-c", "box", "execute_command", arguments},
          std::vector<std::string>{"call", "execute_command", "--container-name", "box", arguments},
          std::vector<std::string>{"-c", "box", "call", "execute_command", arguments}}) {
      const auto invocation = Machine().run(line);
      REQUIRE(invocation);
      CHECK(invocation->command == Command::call);
      CHECK(invocation->call.tool == "execute_command");
      CHECK(invocation->call.arguments == arguments);
      CHECK(invocation->options.container.name == "box");
    }
  }
}

TEST_CASE("options: a malformed command line is rejected with a hint to --help") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--no-such-flag"}, std::vector<std::string>{"no-such-command"},
        std::vector<std::string>{"call"}, std::vector<std::string>{"call", "execute_command"},
        std::vector<std::string>{"call", "a", "{}", "extra"}, std::vector<std::string>{"serve", "doctor"},
        std::vector<std::string>{"-c"}, std::vector<std::string>{"--log-level"}}) {
    CAPTURE(arguments.front());
    const Error error = Machine().error(arguments);
    CHECK(error.code == ErrorCode::bad_option);
    CHECK(error.step() == describe(ErrorCode::bad_option).next_step);
  }
}

TEST_CASE("options: help names every option, even with a bad environment") {
  Machine machine;
  machine.environment["DOCKBRIDGE_LOG_LEVEL"] = "loud";
  for (const std::string flag : {"--help", "-h"}) {
    const auto invocation = machine.run({flag});
    REQUIRE(invocation);
    CHECK(invocation->command == Command::help);
    for (const BadValue& setting : bad_values()) {
      CHECK(contains(invocation->help, "--" + setting.setting));
    }
    CHECK(contains(invocation->help, "--no-start"));
    CHECK(contains(invocation->help, "--no-create"));
    CHECK(contains(invocation->help, "DOCKBRIDGE_LOG_LEVEL"));
  }
  CHECK(machine.run({"--version"})->command == Command::version);
}

TEST_CASE("options: --no-start=false allows starting") {
  const auto invocation = Machine().run({"--no-start=false"});
  CHECK((!invocation || invocation->options.container.may_start));
}

TEST_CASE("options: a config value that is a list, an object or null is rejected") {
  for (const std::string value : {"null", "[\"x\"]", "{}"}) {
    CAPTURE(value);
    CHECK_FALSE(with_config("{\"container-name\": " + value + "}").run({}));
  }
}

TEST_CASE("options: an empty XDG_CONFIG_HOME counts as unset") {
  Machine machine = with_config(R"({"container-name":"box"})");
  machine.environment["XDG_CONFIG_HOME"] = "";
  CHECK(machine.options().container.name == "box");
}

TEST_CASE("options: --http takes a port alone, or an IPv6 host in brackets") {
  const auto endpoint = [](const std::string& given) {
    const Options options = Machine{}.options({"--http", given});
    return options.http.host + " " + options.http.port;
  };
  CHECK(Machine{}.options().http.port.empty());
  CHECK(endpoint("127.0.0.1:7332") == "127.0.0.1 7332");
  CHECK(endpoint("7332") == "127.0.0.1 7332");
  CHECK(endpoint(":7332") == "127.0.0.1 7332");
  CHECK(endpoint("[::1]:7332") == "::1 7332");
  CHECK(endpoint("box.example:0") == "box.example 0");
  for (const char* bad : {"", "localhost", "localhost:", "localhost:http", "localhost:65536", "localhost:-1"}) {
    CHECK(contains(Machine{}.error({"--http", bad}).sentence(), "127.0.0.1:7332"));
  }
}

TEST_CASE("options: the default message limit is larger on stdio than over HTTP") {
  CHECK(Machine().options().max_message_bytes >= 134ULL * 1024 * 1024);  // 100 MiB in base64
  CHECK(Machine().options().http.max_message_bytes == 16ULL * 1024 * 1024);
  const Options given = Machine().options({"--max-message", "32"});
  CHECK(given.max_message_bytes == 32ULL * 1024 * 1024);
  CHECK(given.http.max_message_bytes == 32ULL * 1024 * 1024);
}

TEST_CASE("options: a token is read from the environment, never from a flag") {
  Machine machine;
  machine.environment["DOCKBRIDGE_TOKEN"] = "secret";
  CHECK(machine.options().http.token == "secret");
  CHECK_FALSE(Machine{}.run({"--token", "secret"}));
}

TEST_CASE("options: hosts and origins are lists, and HTTPS needs both files") {
  const Options options =
      Machine{}.options({"--allow-host", "a.example,b.example", "--allow-origin", "https://a.example"});
  CHECK(options.http.hosts == std::vector<std::string>{"a.example", "b.example"});
  CHECK(options.http.origins == std::vector<std::string>{"https://a.example"});
  CHECK(contains(Machine{}.error({"--tls-cert", "c.pem"}).sentence(), "--tls-key"));
}
