#include "mcp/transport/http/access.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "util/encoding.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"
#include "util/random.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr std::size_t k_max_file_bytes = 1024 * 1024;
constexpr std::size_t k_secret_bytes = 32;
constexpr std::size_t k_shortest_secret = 16;
constexpr int k_failures_allowed = 10;
constexpr seconds k_failure_window{60};
constexpr std::size_t k_max_addresses = 10'000;

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// "localhost:8080" and "[::1]:8080" without the port.
std::string host_name(const std::string& host) {
  const std::size_t bracket = host.find(']');
  const std::size_t colon = host.find(':', bracket == std::string::npos ? 0 : bracket);
  return lower(host.substr(0, colon));
}

Result<Token> parse_token(const json& entry, const std::string& source) {
  const auto bad = [&](const std::string& problem) {
    return fail("bad_token_file", fmt::format("{}: {}", source, problem),
                R"(It looks like {"tokens": [{"name": "ci", "token": "...", "tools": ["execute_command"]}]})");
  };
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() || !entry.contains("token") ||
      !entry["token"].is_string()) {
    return bad("each token needs a 'name' and a 'token'");
  }
  Token token{entry["name"], entry["token"], {}, {}};
  if (token.name.empty() || token.secret.size() < k_shortest_secret) {
    return bad(fmt::format("a token has a name and at least {} characters", k_shortest_secret));
  }
  if (const auto tools = entry.find("tools"); tools != entry.end()) {
    const bool names = tools->is_array() &&
                       std::all_of(tools->begin(), tools->end(), [](const json& tool) { return tool.is_string(); });
    if (!names) {
      return bad("'tools' is a list of tool names");
    }
    token.tools = tools->get<std::set<std::string>>();
  }
  if (const auto container = entry.find("container"); container != entry.end()) {
    if (!container->is_string()) {
      return bad("'container' is a container's name");
    }
    token.container = container->get<std::string>();
  }
  return token;
}

}  // namespace

Result<std::vector<Token>> parse_tokens(const std::string& text, const std::string& source) {
  const std::string content = trimmed(text);
  if (!content.starts_with("{")) {
    if (content.size() < k_shortest_secret || content.find_first_of(" \t\r\n") != std::string::npos) {
      return fail("bad_token_file",
                  fmt::format("{} holds no token of at least {} characters", source, k_shortest_secret),
                  "Put one secret into it, for example from: openssl rand -hex 32");
    }
    return std::vector<Token>{{"token", content, {}, {}}};
  }
  const json parsed = json::parse(content, nullptr, false);
  const auto list = parsed.is_object() ? parsed.find("tokens") : parsed.end();
  if (!parsed.is_object() || list == parsed.end() || !list->is_array() || list->empty()) {
    return fail("bad_token_file", fmt::format("{} is not JSON with a list of 'tokens'", source),
                R"(It looks like {"tokens": [{"name": "ci", "token": "..."}]})");
  }
  std::vector<Token> tokens;
  for (const json& entry : *list) {
    auto token = parse_token(entry, source);
    if (!token) {
      return fail(token.error());
    }
    tokens.push_back(std::move(*token));
  }
  return tokens;
}

Result<std::vector<Token>> read_token_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return fail("no_token_file", fmt::format("the token file {} cannot be read", path), "Create it, with mode 0600");
  }
  if ((status.st_mode & 077) != 0) {
    return fail("open_token_file", fmt::format("the token file {} can be read by others", path),
                fmt::format("chmod 600 {}", path));
  }
  const auto text = read_file_at(AT_FDCWD, path, k_max_file_bytes);
  return text ? parse_tokens(*text, path) : fail(text.error());
}

Result<std::vector<Token>> token_file_or_new(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) {
    return read_token_file(path);
  }
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const Fd file(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file && errno == EEXIST) {
    return read_token_file(path);  // another server was faster
  }
  const std::string secret = to_hex(random_bytes(k_secret_bytes));
  if (!file || !write_all(file.get(), secret + "\n")) {
    return fail("no_token_file", fmt::format("a token could not be stored in {}", path),
                "Name a place that can be written with --token-file");
  }
  return std::vector<Token>{{"token", secret, {}, {}}};
}

/// Looks at all of them, so that the time tells nothing.
const Token* Access::find(std::string_view secret) const {
  const Token* found = nullptr;
  for (const Token& token : m_tokens) {
    found = equal_in_constant_time(token.secret, secret) ? &token : found;
  }
  return found;
}

tl::expected<Caller, Access::Refused> Access::admit(const std::optional<std::string>& authorization,
                                                    const std::string& address) {
  if (open()) {
    return Caller{};
  }
  if (throttled(address)) {
    return tl::unexpected<Refused>({429, k_failure_window});
  }
  constexpr std::string_view k_scheme = "bearer ";
  const std::string given = authorization.value_or("");
  const bool bearer = lower(given.substr(0, k_scheme.size())) == k_scheme;
  const Token* token = bearer ? find(trimmed(given.substr(k_scheme.size()))) : nullptr;
  if (token == nullptr) {
    if (bearer) {
      note_failure(address);
    }
    return tl::unexpected<Refused>({401, std::nullopt});
  }
  return Caller{token->name, token->tools};
}

bool Access::throttled(const std::string& address) {
  const std::lock_guard lock(m_mutex);
  const auto found = m_failures.find(address);
  if (found == m_failures.end()) {
    return false;
  }
  if (Clock::now() - found->second.since > k_failure_window) {
    m_failures.erase(found);
    return false;
  }
  return found->second.count >= k_failures_allowed;
}

void Access::note_failure(const std::string& address) {
  const std::lock_guard lock(m_mutex);
  if (m_failures.size() >= k_max_addresses) {
    std::erase_if(m_failures, [](const auto& entry) { return Clock::now() - entry.second.since > k_failure_window; });
  }
  if (m_failures.size() < k_max_addresses || m_failures.contains(address)) {
    Failures& failures = m_failures[address];
    failures.since = failures.count++ == 0 ? Clock::now() : failures.since;
  }
}

Origins::Origins(std::vector<std::string> hosts, std::vector<std::string> origins)
    : m_hosts{"localhost", "127.0.0.1", "[::1]"} {
  for (std::string& host : hosts) {
    m_hosts.insert(lower(std::move(host)));
  }
  for (std::string& origin : origins) {
    m_origins.insert(lower(std::move(origin)));
  }
}

bool Origins::allows_host(const std::string& host) const {
  return m_hosts.contains(host_name(host)) || m_hosts.contains(lower(host));
}

bool Origins::allows_origin(const std::string& origin) const {
  const std::size_t scheme = origin.find("://");
  return m_origins.contains(lower(origin)) ||
         (scheme != std::string::npos && (origin.starts_with("http://") || origin.starts_with("https://")) &&
          m_hosts.contains(host_name(origin.substr(scheme + 3))));
}

}  // namespace dockbridge::mcp::http
