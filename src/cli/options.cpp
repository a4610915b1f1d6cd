#include "cli/options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace dockbridge::cli {

namespace {

using nlohmann::json;

/// Takes a value into the options; returns what would have been accepted if it cannot.
using Taker = std::function<std::optional<std::string>(Options& options, const std::string& value)>;

struct Setting {
  std::string name;  ///< "container-name": flag --container-name, variable DOCKBRIDGE_CONTAINER_NAME, config key
  std::string short_flag;
  std::string placeholder;  ///< empty for a switch
  std::string help;
  Taker take;
  bool repeatable = false;
};

Taker text(std::string Options::*field, const std::string& accepted) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    if (value.empty()) {
      return accepted;
    }
    options.*field = value;
    return std::nullopt;
  };
}

Taker absolute_path(std::string Options::*field) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    if (!value.starts_with('/')) {
      return "an absolute path in the container";
    }
    options.*field = value;
    return std::nullopt;
  };
}

/// Several may be given at once, with colons between them.
Taker host_directories(std::vector<std::string> Options::*field) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(':', begin), value.size());
      const std::string path = value.substr(begin, end - begin);
      if (!path.starts_with('/')) {
        return "absolute paths of directories on the host, with ':' between them";
      }
      (options.*field).push_back(path);
      begin = end + 1;
    }
    return std::nullopt;
  };
}

Taker container_text(std::string docker::ContainerPolicy::*field, const std::string& accepted, bool absolute = false) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    if (value.empty() || (absolute && value.front() != '/')) {
      return accepted;
    }
    options.container.*field = value;
    return std::nullopt;
  };
}

/// `unit` is what follows "a number".
Taker number(const std::string& unit, double least, double most, const std::function<void(Options&, double)>& set) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    double given = NAN;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), given);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size() || !(given >= least && given <= most)) {
      return fmt::format("a number{} from {} to {}", unit, least, most);
    }
    set(options, given);
    return std::nullopt;
  };
}

Taker duration(milliseconds tools::Settings::*field, double least, double most) {
  return number(" of seconds", least, most, [=](Options& options, double given) {
    options.tools.*field = milliseconds(static_cast<std::int64_t>(given * 1000));
  });
}

template <typename Value>
Taker choice(std::map<std::string, Value> values, std::function<void(Options&, Value)> set) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    const auto found = values.find(value);
    if (found == values.end()) {
      std::string names;
      for (const auto& [name, ignored] : values) {
        names += (names.empty() ? "" : ", ") + name;
      }
      return "one of: " + names;
    }
    set(options, found->second);
    return std::nullopt;
  };
}

Taker whole_number(std::int64_t least, std::int64_t most, std::function<void(Options&, std::int64_t)> set) {
  return [least, most, set = std::move(set)](Options& options, const std::string& value) -> std::optional<std::string> {
    std::int64_t number = 0;
    const char* end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || number < least || number > most) {
      return fmt::format("a whole number from {} to {}", least, most);
    }
    set(options, number);
    return std::nullopt;
  };
}

Taker switch_off(bool docker::ContainerPolicy::*field) {
  return choice<bool>({{"true", true}, {"false", false}, {"1", true}, {"0", false}},
                      [=](Options& options, bool given) { options.container.*field = !given; });
}

Taker http_text(std::string HttpOptions::*field, const std::string& accepted) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    if (value.empty()) {
      return accepted;
    }
    options.http.*field = value;
    return std::nullopt;
  };
}

Taker http_list(std::vector<std::string> HttpOptions::*field) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    std::vector<std::string> entries;
    for (std::size_t from = 0; from <= value.size();) {
      const std::size_t comma = std::min(value.find(',', from), value.size());
      if (comma > from) {
        entries.push_back(value.substr(from, comma - from));
      }
      from = comma + 1;
    }
    options.http.*field = entries;
    return std::nullopt;
  };
}

Taker http_switch(bool HttpOptions::*field) {
  return choice<bool>({{"true", true}, {"false", false}, {"1", true}, {"0", false}},
                      [=](Options& options, bool given) { options.http.*field = given; });
}

/// "NAME=SECONDS", several with commas between them. A later row wins over an earlier one.
std::optional<std::string> take_client_waits(Options& options, const std::string& value) {
  constexpr double k_most_seconds = 86400;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(',', begin), value.size());
    const std::string row = value.substr(begin, end - begin);
    const std::size_t equals = std::min(row.rfind('='), row.size());
    double given = 0;
    const char* last = row.data() + row.size();
    const auto parsed = std::from_chars(row.data() + std::min(equals + 1, row.size()), last, given);
    if (equals == 0 || parsed.ec != std::errc() || parsed.ptr != last || !(given >= 1 && given <= k_most_seconds)) {
      return fmt::format("NAME=SECONDS, such as codex-mcp-client=900, with 1 to {} seconds", k_most_seconds);
    }
    auto& rows = options.tools.client_waits;
    rows.insert(rows.begin(), {row.substr(0, equals), milliseconds(static_cast<std::int64_t>(given * 1000))});
    begin = end + 1;
  }
  return std::nullopt;
}

/// "HOST:PORT", "[::1]:PORT", ":PORT" or "PORT".
std::optional<std::string> take_endpoint(Options& options, const std::string& value) {
  const std::size_t colon = value.rfind(':');
  std::string host = colon == std::string::npos ? "" : value.substr(0, colon);
  const std::string port = colon == std::string::npos ? value : value.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  unsigned int number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  if (port.empty() || parsed.ec != std::errc() || parsed.ptr != port.data() + port.size() || number > 65535) {
    return "an address such as 127.0.0.1:7332, or a port";
  }
  options.http.host = host.empty() ? "127.0.0.1" : host;
  options.http.port = port;
  return std::nullopt;
}

std::optional<std::string> take_tools(Options& options, const std::string& value) {
  auto selection = tools::ToolSelection::parse(value);
  if (!selection) {
    return fmt::format("minimal, or names and globs of {}", fmt::join(tools::k_tool_names, ", "));
  }
  options.tools.selection = std::move(*selection);
  return std::nullopt;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {"container-name", "-c", "NAME", "the container to work in (mcp-container)",
       container_text(&docker::ContainerPolicy::name, "a container's name or id")},
      {"via", "", "engine|exec", "reach it by the Engine API or by the docker command (engine)",
       choice<Via>({{"engine", Via::engine}, {"exec", Via::exec}}, [](Options& o, Via v) { o.via = v; })},
      {"docker-host", "", "URL", "the engine's address (DOCKER_HOST, docker context, usual sockets)",
       text(&Options::docker_host, "an address like unix:///var/run/docker.sock or tcp://127.0.0.1:2375")},
      {"docker-command", "", "PROGRAM", "the program for --via exec (docker)",
       text(&Options::docker_command, "a program such as docker or podman")},
      {"workdir", "", "DIR", "where commands run in the container (/app)",
       container_text(&docker::ContainerPolicy::workdir, "an absolute path in the container", true)},
      {"root", "", "DIR", "keep the file tools beneath this directory of the container (no limit)",
       absolute_path(&Options::file_root)},
      {"allow-host-path", "", "DIR",
       "let file_upload and file_download use this directory of the host; may be repeated (none)",
       host_directories(&Options::host_directories), true},
      {"image", "", "IMAGE", "what to create a missing container from (dockbridge-sandbox:latest)",
       container_text(&docker::ContainerPolicy::image, "an image's name")},
      {"workspace", "", "DIR", "host directory to mount at the workdir of a container that is created",
       container_text(&docker::ContainerPolicy::workspace, "an absolute path on the host", true)},
      {"no-start", "", "", "never start a stopped container", switch_off(&docker::ContainerPolicy::may_start)},
      {"no-create", "", "", "never create a missing container", switch_off(&docker::ContainerPolicy::may_create)},
      {"no-direct-line", "", "", "talk to the container through the engine even where they share a directory",
       switch_off(&docker::ContainerPolicy::may_go_direct)},
      {"inactivity-timeout", "", "SECONDS", "silence after which a command is left in the background (20)",
       duration(&tools::Settings::inactivity_timeout, 0.1, 3600)},
      {"load-stretch", "", "FACTOR", "how many times that, at most, for a command that has no CPU to run on (1)",
       number("", 1, 100, [](Options& o, double given) { o.tools.load_stretch = given; })},
      {"max-wait", "", "SECONDS", "the longest a call waits (600)", duration(&tools::Settings::max_wait, 1, 86400)},
      {"client-timeout", "", "SECONDS", "the longest a call waits for a client without progress (50)",
       duration(&tools::Settings::client_timeout, 1, 86400)},
      {"client-wait", "", "NAME=SECONDS", "the longest a call waits for clients of this name; NAME* for a prefix",
       take_client_waits, true},
      {"max-runtime", "", "SECONDS", "the longest a command may run, 0 for ever (0)",
       duration(&tools::Settings::max_runtime, 0, 30.0 * 86400)},
      {"retention-age", "", "SECONDS", "how long finished processes stay readable (3600)",
       whole_number(1, 30L * 86400,
                    [](Options& o, std::int64_t number) { o.retention.age = std::chrono::seconds(number); })},
      {"retention-count", "", "N", "how many of them (1000)",
       whole_number(1, 100'000,
                    [](Options& o, std::int64_t number) { o.retention.count = static_cast<std::uint64_t>(number); })},
      {"retention-size", "", "MIB", "how much output of them (2048)",
       whole_number(1, 1024L * 1024,
                    [](Options& o, std::int64_t number) {
                      o.retention.bytes = static_cast<std::uint64_t>(number) * 1024 * 1024;
                    })},
      {"rationale", "", "required|optional", "whether every call has to say why (required)",
       choice<bool>({{"required", true}, {"optional", false}},
                    [](Options& o, bool required) { o.tools.rationale_required = required; })},
      {"edit-guard", "", "read|match", "what file_edit demands: a prior read, or a unique oldString (read)",
       choice<bool>({{"read", false}, {"match", true}}, [](Options& o, bool match) { o.tools.match_is_read = match; })},
      {"tools", "", "GLOB,...", "tools that clients can see: names, globs, or minimal (all)", take_tools},
      {"structured", "", "on|off", "add structuredContent and output schemas, for programs (off)",
       choice<mcp::Representation>(
           {{"on", mcp::Representation::structured}, {"off", mcp::Representation::text}},
           [](Options& o, mcp::Representation representation) { o.representation = representation; })},
      {"http", "", "HOST:PORT", "serve MCP over HTTP at /mcp instead of stdio (host 127.0.0.1)", take_endpoint},
      {"stdio", "", "", "with --http: serve stdio too", http_switch(&HttpOptions::stdio_too)},
      {"token-file", "", "FILE", "tokens for HTTP, mode 0600; made if it is missing (~/.config/dockbridge/token)",
       http_text(&HttpOptions::token_file, "a file's path")},
      {"no-token", "", "", "serve HTTP on this machine without a token", http_switch(&HttpOptions::no_token)},
      {"allow-host", "", "HOST,...", "names that HTTP clients may call this server by, beside the local ones",
       http_list(&HttpOptions::hosts)},
      {"allow-origin", "", "ORIGIN,...", "web pages that may call this server, beside local ones",
       http_list(&HttpOptions::origins)},
      {"tls-cert", "", "FILE", "certificate for HTTPS, PEM",
       http_text(&HttpOptions::tls_certificate, "a PEM file's path")},
      {"tls-key", "", "FILE", "its private key, PEM", http_text(&HttpOptions::tls_key, "a PEM file's path")},
      {"max-sessions", "", "N", "HTTP sessions of handshake clients, for each token (100)",
       whole_number(1, 10'000,
                    [](Options& o, std::int64_t number) { o.http.max_sessions = static_cast<std::size_t>(number); })},
      {"session-idle", "", "SECONDS", "how long one is kept without use (3600)",
       whole_number(1, 30L * 86400,
                    [](Options& o, std::int64_t number) { o.http.session_idle = std::chrono::seconds(number); })},
      {"max-rate", "", "N", "HTTP requests a second for each token (10000)",
       whole_number(1, 1'000'000, [](Options& o, std::int64_t number) { o.http.rate = static_cast<double>(number); })},
      {"max-message", "", "MIB", "the longest message that a client may send (160; 16 over HTTP)",
       whole_number(1, 256,
                    [](Options& o, std::int64_t number) {
                      o.max_message_bytes = static_cast<std::size_t>(number) * 1024 * 1024;
                      o.http.max_message_bytes = o.max_message_bytes;
                    })},
      {"log-level", "", "LEVEL", "debug, info, warn, error or off (info)",
       choice<LogLevel>({{"debug", LogLevel::debug},
                         {"info", LogLevel::info},
                         {"warn", LogLevel::warn},
                         {"error", LogLevel::error},
                         {"off", LogLevel::off}},
                        [](Options& o, LogLevel level) { o.log_level = level; })},
      {"log-format", "", "text|json", "how log lines on stderr look (text)",
       choice<LogFormat>({{"text", LogFormat::text}, {"json", LogFormat::json}},
                         [](Options& o, LogFormat format) { o.log_format = format; })},
  };
  return all;
}

std::string variable_of(const Setting& setting) {
  std::string name = "DOCKBRIDGE_" + setting.name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return name;
}

Result<void> take(const Setting& setting, Options& options, const std::string& value, const std::string& source) {
  if (const auto accepted = setting.take(options, value)) {
    return fail(ErrorCode::bad_option, fmt::format("Not a valid {1}: '{0}' (from {2})", value, setting.name, source),
                "Accepted: " + *accepted);
  }
  return {};
}

std::string value_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Result<void> take_config(const std::string& path, const std::string& content, Options& options) {
  const json config = json::parse(content, nullptr, false, /*ignore_comments=*/true);
  if (!config.is_object()) {
    return fail(ErrorCode::bad_config, fmt::format("Not a JSON object: {}", path),
                R"(It looks like {"container-name": "mcp-container", "log-level": "warn"})");
  }
  for (const auto& entry : config.items()) {
    const std::string& key = entry.key();
    const auto& all = settings();
    const auto known = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.name == key; });
    if (known == all.end()) {
      std::string names;
      for (const Setting& setting : all) {
        names += (names.empty() ? "" : ", ") + setting.name;
      }
      return fail(ErrorCode::bad_config, fmt::format("Unknown setting '{}' (from {})", key, path),
                  "Accepted: " + names);
    }
    if (entry.value().is_structured() || entry.value().is_null()) {
      return fail(ErrorCode::bad_config,
                  fmt::format("Not a valid {1}: '{0}' (from {2})", entry.value().dump(), key, path),
                  "Accepted: a string, a number, true or false");
    }
    if (auto taken = take(*known, options, value_text(entry.value()), path); !taken) {
      return taken;
    }
  }
  return {};
}

/// The config file named by flag or variable has to be there; the one in the usual place need not.
Result<void> read_config(const std::string& flag, const Surroundings& surroundings, Options& options) {
  std::string path = flag.empty() ? surroundings.environment("DOCKBRIDGE_CONFIG").value_or("") : flag;
  const bool named = !path.empty();
  if (!named) {
    const auto home = surroundings.environment("HOME");
    const std::string xdg = surroundings.environment("XDG_CONFIG_HOME").value_or("");
    if (!home && xdg.empty()) {
      return {};
    }
    path = (xdg.empty() ? home.value_or("") + "/.config" : xdg) + "/dockbridge/config.json";
  }
  const auto content = surroundings.read_file(path);
  if (!content) {
    return fail(ErrorCode::bad_config, content.error().message, content.error().next_step);
  }
  if (!*content) {
    return named ? Result<void>(fail(ErrorCode::bad_config, fmt::format("No such file or directory: {}", path),
                                     "Create the file, or leave out --config"))
                 : Result<void>();
  }
  options.config_file = path;
  return take_config(path, **content, options);
}

}  // namespace

Result<Invocation> parse_command_line(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  CLI::App app{"dockbridge: an MCP server that gives an AI agent a Docker container to work in", "dockbridge"};
  app.footer(
      "Each option is also an environment variable (--log-level: DOCKBRIDGE_LOG_LEVEL) and a key in the config\n"
      "file (\"log-level\"). Without a command, dockbridge serves MCP on stdio. A token for HTTP\n"
      "can also come from DOCKBRIDGE_TOKEN.\n\n"
      "Examples:\n"
      "  dockbridge -c my-container\n"
      "  dockbridge --http 127.0.0.1:7332\n"
      "  dockbridge call execute_command '{\"command\": \"uname -a\"}'\n"
      "  dockbridge doctor");
  app.set_help_flag("-h,--help", "show this and exit");
  bool version = false;
  app.add_flag("--version", version, "show the version and exit");
  std::string config;
  app.add_option("--config", config, "config file (~/.config/dockbridge/config.json)")->option_text("FILE");
  std::map<std::string, std::vector<std::string>> flags;
  std::map<std::string, bool> switches;
  for (const Setting& setting : settings()) {
    const std::string names = (setting.short_flag.empty() ? "" : setting.short_flag + ",") + "--" + setting.name;
    if (setting.placeholder.empty()) {
      app.add_flag(names, switches[setting.name], setting.help);
    } else {
      app.add_option(names, flags[setting.name], setting.help)
          ->option_text(setting.placeholder)
          ->expected(1)
          ->allow_extra_args(false)  // what follows the value is a positional of the subcommand
          ->multi_option_policy(setting.repeatable ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::Throw);
    }
  }
  Invocation invocation;
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.add_subcommand("serve", "serve MCP on stdio or HTTP (the default)");
  auto* call = app.add_subcommand("call", "make one tool call and print its result");
  call->add_option("TOOL", invocation.call.tool, "the tool's name")->required();
  call->add_option("JSON", invocation.call.arguments, "its arguments")->required();
  call->add_flag("--raw", invocation.call.raw, "print control characters unescaped, also on a terminal");
  auto* doctor = app.add_subcommand("doctor", "check engine, container and agent, and say how to mend what is wrong");

  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    invocation.command = Command::help;
    invocation.help = app.help();
    return invocation;
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::bad_option, error.what(), "See dockbridge --help");
  }
  if (version) {
    invocation.command = Command::version;
    return invocation;
  }
  if (auto taken = read_config(config, surroundings, invocation.options); !taken) {
    return fail(taken.error());
  }
  for (const Setting& setting : settings()) {
    const std::string variable = variable_of(setting);
    if (const auto value = surroundings.environment(variable)) {
      if (auto taken = take(setting, invocation.options, *value, "the environment variable " + variable); !taken) {
        return fail(taken.error());
      }
    }
    if (app.count("--" + setting.name) > 0 && setting.placeholder.empty()) {
      flags[setting.name] = {switches[setting.name] ? "true" : "false"};
    }
    for (const std::string& value : flags[setting.name]) {
      if (auto taken = take(setting, invocation.options, value, "the flag --" + setting.name); !taken) {
        return fail(taken.error());
      }
    }
  }
  HttpOptions& http = invocation.options.http;
  http.token = surroundings.environment("DOCKBRIDGE_TOKEN").value_or("");
  if (http.tls_certificate.empty() != http.tls_key.empty()) {
    return fail(ErrorCode::bad_option, "HTTPS needs both --tls-cert and --tls-key");
  }
  invocation.command = call->parsed() ? Command::call : doctor->parsed() ? Command::doctor : Command::serve;
  return invocation;
}

}  // namespace dockbridge::cli
