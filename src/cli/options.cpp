#include "cli/options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace dockbridge::cli {

namespace {

using nlohmann::json;

/// Sets a value in the options. If the value is rejected, returns a description of the accepted ones.
using Taker = std::function<std::optional<std::string>(Options& options, const std::string& value)>;

struct Setting {
  const char* group;  ///< heading in the help
  const char* name;   ///< "container-name": flag --container-name, variable DOCKBRIDGE_CONTAINER_NAME, config key
  const char* short_flag;
  const char* placeholder;  ///< empty for a switch
  const char* help;
  Taker take;
  bool repeatable = false;

  [[nodiscard]] std::string flag() const { return std::string("--") + name; }
  [[nodiscard]] bool is_switch() const { return *placeholder == '\0'; }
};

Taker text(std::string Options::*field, const char* accepted) {
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

/// Accepts several directories with colons between them.
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

Taker container_text(std::string docker::ContainerPolicy::*field, const char* accepted, bool absolute = false) {
  return [=](Options& options, const std::string& value) -> std::optional<std::string> {
    if (value.empty() || (absolute && value.front() != '/')) {
      return accepted;
    }
    options.container.*field = value;
    return std::nullopt;
  };
}

/// `unit` is what follows "a number".
Taker number(const char* unit, double least, double most, const std::function<void(Options&, double)>& set) {
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

Taker http_text(std::string HttpOptions::*field, const char* accepted) {
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
  constexpr double k_max_seconds = 86400;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(',', begin), value.size());
    const std::string row = value.substr(begin, end - begin);
    const std::size_t equals = std::min(row.rfind('='), row.size());
    double given = 0;
    const char* last = row.data() + row.size();
    const auto parsed = std::from_chars(row.data() + std::min(equals + 1, row.size()), last, given);
    if (equals == 0 || parsed.ec != std::errc() || parsed.ptr != last || !(given >= 1 && given <= k_max_seconds)) {
      return fmt::format("NAME=SECONDS, such as codex-mcp-client=900, with 1 to {} seconds", k_max_seconds);
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

/// Names with commas between them.
std::optional<std::string> take_compat(Options& options, const std::string& value) {
  static const std::map<std::string, tools::Compat> k_servers = {{"repl", tools::Compat::repl},
                                                                 {"coderunner", tools::Compat::coderunner}};
  options.tools.compat.clear();
  for (std::size_t from = 0; from <= value.size();) {
    const std::size_t comma = std::min(value.find(',', from), value.size());
    const auto server = k_servers.find(value.substr(from, comma - from));
    if (server == k_servers.end()) {
      return "repl, coderunner, or both with a comma between them";
    }
    options.tools.compat.insert(server->second);
    from = comma + 1;
  }
  return std::nullopt;
}

/// Idle limit of sessions in that server.
constexpr milliseconds k_repl_idle_limit{300'000};

/// Width of the column of options in the help.
constexpr std::size_t k_help_column = 33;

constexpr const char* k_container_group = "Container";
constexpr const char* k_engine_group = "Engine";
constexpr const char* k_commands_group = "Commands";
constexpr const char* k_files_group = "Files";
constexpr const char* k_tools_group = "Tools and replies";
constexpr const char* k_http_group = "HTTP";
constexpr const char* k_general_group = "General";

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {k_container_group, "container-name", "-c", "NAME", "Container to work in [default: mcp-container]",
       container_text(&docker::ContainerPolicy::name, "a container's name or id")},
      {k_container_group, "workdir", "", "DIR", "Directory of the container in which commands run [default: /app]",
       container_text(&docker::ContainerPolicy::workdir, "an absolute path in the container", true)},
      {k_container_group, "image", "", "IMAGE",
       "Image for a container that dockbridge creates [default: dockbridge-sandbox:latest]",
       container_text(&docker::ContainerPolicy::image, "an image's name")},
      {k_container_group, "workspace", "", "DIR",
       "Directory of the host to mount at the workdir of a new container [default: none]",
       container_text(&docker::ContainerPolicy::workspace, "an absolute path on the host", true)},
      {k_container_group, "no-start", "", "", "Do not start a stopped container",
       switch_off(&docker::ContainerPolicy::may_start)},
      {k_container_group, "no-create", "", "", "Do not create a missing container",
       switch_off(&docker::ContainerPolicy::may_create)},
      {k_engine_group, "via", "", "engine|exec", "Use the Engine API or the docker command [default: engine]",
       choice<Via>({{"engine", Via::engine}, {"exec", Via::exec}}, [](Options& o, Via v) { o.via = v; })},
      {k_engine_group, "docker-host", "", "URL",
       "Address of the engine [default: DOCKER_HOST, the docker context, the usual sockets]",
       text(&Options::docker_host, "an address like unix:///var/run/docker.sock or tcp://127.0.0.1:2375")},
      {k_engine_group, "docker-command", "", "PROGRAM", "Program for --via exec, such as podman [default: docker]",
       text(&Options::docker_command, "a program such as docker or podman")},
      {k_engine_group, "no-direct-line", "", "",
       "Always communicate through the engine, even if a shared directory allows a socket",
       switch_off(&docker::ContainerPolicy::may_go_direct)},
      {k_commands_group, "inactivity-timeout", "", "SECONDS",
       "Time without output after which a command continues in the background [default: 20]",
       duration(&tools::Settings::inactivity_timeout, 0.1, 3600)},
      {k_commands_group, "load-stretch", "", "FACTOR",
       "Multiply that time by up to FACTOR for a command that waits for a CPU [default: 1]",
       number("", 1, 100, [](Options& o, double given) { o.tools.load_stretch = given; })},
      {k_commands_group, "max-wait", "", "SECONDS", "Longest wait of a call [default: 600]",
       duration(&tools::Settings::max_wait, 1, 86400)},
      {k_commands_group, "client-timeout", "", "SECONDS",
       "Longest wait of a call without a progress token [default: 50]",
       duration(&tools::Settings::client_timeout, 1, 86400)},
      {k_commands_group, "client-wait", "", "NAME=SECONDS",
       "Longest wait of a call for clients of this name; NAME* is a prefix; repeatable", take_client_waits, true},
      {k_commands_group, "max-runtime", "", "SECONDS", "Longest run time of a command; 0 means no limit [default: 0]",
       duration(&tools::Settings::max_runtime, 0, 30.0 * 86400)},
      {k_commands_group, "retention-age", "", "SECONDS",
       "Time for which finished processes stay readable [default: 3600]",
       whole_number(1, 30L * 86400,
                    [](Options& o, std::int64_t number) { o.retention.age = std::chrono::seconds(number); })},
      {k_commands_group, "retention-count", "", "N", "Number of finished processes that stay readable [default: 1000]",
       whole_number(1, 100'000,
                    [](Options& o, std::int64_t number) { o.retention.count = static_cast<std::uint64_t>(number); })},
      {k_commands_group, "retention-size", "", "MIB", "Stored output of all processes, in MiB [default: 2048]",
       whole_number(1, 1024L * 1024,
                    [](Options& o, std::int64_t number) {
                      o.retention.bytes = static_cast<std::uint64_t>(number) * 1024 * 1024;
                    })},
      {k_commands_group, "session-idle-limit", "", "SECONDS",
       "Time without use after which a Python session or shell ends; 0 means never [default: 3600; with --compat repl 300]",
       number(" of seconds", 0, 30.0 * 86400,
              [](Options& o, double given) {
                o.tools.session_idle_limit = milliseconds(static_cast<std::int64_t>(given * 1000));
                o.has_session_idle_limit = true;
              })},
      {k_commands_group, "python-sessions", "", "N",
       "Python sessions, and as many shells, per token or local user [default: 16]",
       whole_number(
           1, 1000,
           [](Options& o, std::int64_t number) { o.tools.max_python_sessions = static_cast<std::size_t>(number); })},
      {k_commands_group, "python-warm", "", "N", "Python interpreters to keep ready, 0 to 5 [default: 1]",
       whole_number(
           0, wire::k_max_warm_interpreters,
           [](Options& o, std::int64_t number) { o.tools.warm_interpreters = static_cast<std::uint8_t>(number); })},
      {k_commands_group, "python-ipython", "", "auto|never",
       "Whether Python sessions use IPython if the image has it [default: auto]",
       choice<bool>({{"auto", true}, {"never", false}}, [](Options& o, bool may) { o.tools.may_use_ipython = may; })},
      {k_files_group, "root", "", "DIR",
       "Restrict the file tools to this directory of the container [default: no limit]",
       absolute_path(&Options::file_root)},
      {k_files_group, "allow-host-path", "", "DIR",
       "Directory of the host for file_upload and file_download; repeatable [default: none]",
       host_directories(&Options::host_directories), true},
      {k_files_group, "edit-guard", "", "read|match",
       "file_edit requires a prior read, or an exact and unique oldString [default: read]",
       choice<bool>({{"read", false}, {"match", true}}, [](Options& o, bool match) { o.tools.match_is_read = match; })},
      {k_tools_group, "tools", "", "GLOB,...", "Tools that clients can see: names, globs, or minimal [default: all]",
       take_tools},
      {k_tools_group, "compat", "", "repl,coderunner",
       "Also list the tools of these older servers; docs/compatibility.md [default: none]", take_compat},
      {k_tools_group, "rationale", "", "required|optional",
       "Whether every call must state its reason [default: required]",
       choice<bool>({{"required", true}, {"optional", false}},
                    [](Options& o, bool required) { o.tools.rationale_required = required; })},
      {k_tools_group, "structured", "", "on|off",
       "Send structuredContent and output schemas, for programs [default: off]",
       choice<mcp::Representation>(
           {{"on", mcp::Representation::structured}, {"off", mcp::Representation::text}},
           [](Options& o, mcp::Representation representation) { o.representation = representation; })},
      {k_tools_group, "max-message", "", "MIB", "Longest message of a client, in MiB [default: 160; over HTTP 16]",
       whole_number(1, 256,
                    [](Options& o, std::int64_t number) {
                      o.max_message_bytes = static_cast<std::size_t>(number) * 1024 * 1024;
                      o.http.max_message_bytes = o.max_message_bytes;
                    })},
      {k_http_group, "http", "", "HOST:PORT",
       "Serve MCP over HTTP at /mcp instead of stdio; the default host is 127.0.0.1", take_endpoint},
      {k_http_group, "stdio", "", "", "With --http: also serve stdio", http_switch(&HttpOptions::stdio_too)},
      {k_http_group, "token-file", "", "FILE",
       "Tokens, mode 0600; created if missing [default: ~/.config/dockbridge/token]",
       http_text(&HttpOptions::token_file, "a file's path")},
      {k_http_group, "no-token", "", "", "Accept clients of this machine without a token",
       http_switch(&HttpOptions::no_token)},
      {k_http_group, "allow-host", "", "HOST,...", "Accepted values of Host in addition to local names [default: none]",
       http_list(&HttpOptions::hosts)},
      {k_http_group, "allow-origin", "", "ORIGIN,...",
       "Accepted values of Origin in addition to local pages [default: none]", http_list(&HttpOptions::origins)},
      {k_http_group, "tls-cert", "", "FILE", "Certificate for HTTPS, PEM",
       http_text(&HttpOptions::tls_certificate, "a PEM file's path")},
      {k_http_group, "tls-key", "", "FILE", "Private key of the certificate, PEM",
       http_text(&HttpOptions::tls_key, "a PEM file's path")},
      {k_http_group, "max-sessions", "", "N", "Sessions per token [default: 100]",
       whole_number(1, 10'000,
                    [](Options& o, std::int64_t number) { o.http.max_sessions = static_cast<std::size_t>(number); })},
      {k_http_group, "session-idle", "", "SECONDS", "Time after which an unused session ends [default: 3600]",
       whole_number(1, 30L * 86400,
                    [](Options& o, std::int64_t number) { o.http.session_idle = std::chrono::seconds(number); })},
      {k_http_group, "max-rate", "", "N", "Requests per second per token [default: 10000]",
       whole_number(1, 1'000'000, [](Options& o, std::int64_t number) { o.http.rate = static_cast<double>(number); })},
      {k_general_group, "log-level", "", "LEVEL", "debug, info, warn, error or off [default: info]",
       choice<LogLevel>({{"debug", LogLevel::debug},
                         {"info", LogLevel::info},
                         {"warn", LogLevel::warn},
                         {"error", LogLevel::error},
                         {"off", LogLevel::off}},
                        [](Options& o, LogLevel level) { o.log_level = level; })},
      {k_general_group, "log-format", "", "text|json", "Format of the log on stderr [default: text]",
       choice<LogFormat>({{"text", LogFormat::text}, {"json", LogFormat::json}},
                         [](Options& o, LogFormat format) { o.log_format = format; })},
  };
  return all;
}

std::string variable_of(const Setting& setting) {
  std::string name = std::string("DOCKBRIDGE_") + setting.name;
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
        names += (names.empty() ? "" : ", ") + std::string(setting.name);
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

/// A config file that a flag or variable names must exist. The one at the default path is optional.
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
  CLI::App app{"MCP server that gives an AI agent a Docker container to work in", "dockbridge"};
  app.footer(
      "Without a subcommand, dockbridge serves MCP on stdio. Each option is also an environment variable\n"
      "(--log-level is DOCKBRIDGE_LOG_LEVEL) and a key of the config file (\"log-level\"). Options override\n"
      "variables, and variables override the file. DOCKBRIDGE_TOKEN sets the token for HTTP.\n\n"
      "Examples:\n"
      "  dockbridge -c my-container\n"
      "  dockbridge --http 127.0.0.1:7332\n"
      "  dockbridge call execute_command '{\"command\": \"uname -a\"}'\n"
      "  dockbridge doctor");
  std::map<std::string, std::vector<std::string>> flags;
  std::map<std::string, bool> switches;
  for (const Setting& setting : settings()) {
    const std::string names =
        (*setting.short_flag == '\0' ? "" : setting.short_flag + std::string(",")) + setting.flag();
    if (setting.is_switch()) {
      app.add_flag(names, switches[setting.name], setting.help)->group(setting.group);
    } else {
      app.add_option(names, flags[setting.name], setting.help)
          ->option_text(setting.placeholder)
          ->group(setting.group)
          ->expected(1)
          ->allow_extra_args(false)  // what follows the value is a positional of the subcommand
          ->multi_option_policy(setting.repeatable ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::Throw);
    }
  }
  std::string config;
  app.add_option("--config", config, "Config file, JSON [default: ~/.config/dockbridge/config.json]")
      ->option_text("FILE")
      ->group(k_general_group);
  bool version = false;
  app.add_flag("--version", version, "Print the version and exit")->group(k_general_group);
  app.set_help_flag("-h,--help", "Print this help and exit")->group(k_general_group);
  app.get_formatter()->column_width(k_help_column);
  Invocation invocation;
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.add_subcommand("serve", "Serve MCP on stdio or HTTP (the default)");
  auto* call = app.add_subcommand("call", "Call one tool and print its result");
  call->add_option("TOOL", invocation.call.tool, "Name of the tool")->required();
  call->add_option("JSON", invocation.call.arguments, "Arguments of the tool, a JSON object")->required();
  call->add_flag("--raw", invocation.call.raw, "Print control characters unchanged, also on a terminal");
  auto* doctor = app.add_subcommand("doctor", "Check the engine, the container and the agent, and suggest fixes");

  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    invocation.command = Command::help;
    invocation.help = app.help();
    return invocation;
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::bad_option, error.what());
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
    if (app.count(setting.flag()) > 0 && setting.is_switch()) {
      flags[setting.name] = {switches[setting.name] ? "true" : "false"};
    }
    for (const std::string& value : flags[setting.name]) {
      if (auto taken = take(setting, invocation.options, value, "the flag " + setting.flag()); !taken) {
        return fail(taken.error());
      }
    }
  }
  if (invocation.options.tools.compat.contains(tools::Compat::repl) && !invocation.options.has_session_idle_limit) {
    invocation.options.tools.session_idle_limit = k_repl_idle_limit;
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
