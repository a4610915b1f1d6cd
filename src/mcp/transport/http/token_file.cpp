#include "mcp/transport/http/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "util/encoding.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"
#include "util/random.hpp"
#include "util/text.hpp"
#include "util/trusted_file.hpp"

namespace dockbridge::mcp::http {

namespace {

using nlohmann::json;

constexpr std::size_t k_secret_bytes = 32;
constexpr std::size_t k_min_secret_length = 16;
constexpr std::size_t k_max_name_length = 100;
constexpr std::string_view k_blank = " \t\r\n";
constexpr std::array<std::string_view, 4> k_entry_keys = {"name", "token", "tools", "container"};

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(k_blank);
  const std::size_t end = text.find_last_not_of(k_blank);
  return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

tl::unexpected<Error> bad(const std::string& source, const std::string& problem) {
  return fail(ErrorCode::bad_token_file, fmt::format("{}: {}", source, problem),
              R"(It looks like {"tokens": [{"name": "ci", "token": "...", "tools": ["execute_command"]}]})");
}

/// nullopt if the text is not JSON or an object repeats a key. A repeated "tools" would silently replace the first one.
std::optional<json> parse_strictly(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  bool repeated = false;
  json parsed = json::parse(
      text,
      [&](int, json::parse_event_t event, json& value) {
        if (event == json::parse_event_t::object_start) {
          keys.emplace_back();
        } else if (event == json::parse_event_t::object_end) {
          keys.pop_back();
        } else if (event == json::parse_event_t::key) {
          repeated = !keys.back().insert(value.get<std::string>()).second || repeated;
        }
        return true;
      },
      /*allow_exceptions=*/false);
  return parsed.is_discarded() || repeated ? std::nullopt : std::optional(std::move(parsed));
}

bool is_usable_secret(std::string_view secret) {
  return secret.size() >= k_min_secret_length &&
         std::all_of(secret.begin(), secret.end(), [](unsigned char c) { return c > 0x20 && c != 0x7F; });
}

/// Name of an entry in errors: its own name, or its position if it has none.
std::string title_of(const json& entry, std::size_t index) {
  const auto name = entry.is_object() ? entry.find("name") : entry.end();
  const bool named = entry.is_object() && name != entry.end() && name->is_string() && !name->empty();
  return named ? fmt::format("token '{}'", printable_line(name->get<std::string>(), k_max_name_length))
               : fmt::format("token number {}", index + 1);
}

Result<Token> parse_token(const json& entry, std::size_t index, const std::string& source) {
  const std::string title = title_of(entry, index);
  const auto wrong = [&](const std::string& problem) { return bad(source, fmt::format("{} {}", title, problem)); };
  if (!entry.is_object()) {
    return wrong("is not an object");
  }
  for (const auto& [key, value] : entry.items()) {
    if (std::find(k_entry_keys.begin(), k_entry_keys.end(), key) == k_entry_keys.end()) {
      return wrong(fmt::format("has the unknown key '{}'", printable_line(key, k_max_name_length)));
    }
  }
  const auto text = [&](const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
  };
  const auto name = text("name");
  if (!name || name->empty() || name->size() > k_max_name_length || printable_line(*name, k_max_name_length) != *name) {
    return wrong(fmt::format("needs a 'name' of 1 to {} printable characters", k_max_name_length));
  }
  const auto secret = text("token");
  if (!secret || !is_usable_secret(*secret)) {
    return wrong(fmt::format("needs a 'token' of at least {} characters without blanks", k_min_secret_length));
  }
  Token token{*name, *secret, {}, {}};
  if (const auto tools = entry.find("tools"); tools != entry.end()) {
    const bool names = tools->is_array() && !tools->empty() &&
                       std::all_of(tools->begin(), tools->end(), [](const json& tool) { return tool.is_string(); });
    if (!names) {
      return wrong("needs 'tools' to be a non-empty list of tool names; leave it out to allow all");
    }
    token.tools = tools->get<std::set<std::string>>();
  }
  if (entry.contains("container")) {
    token.container = text("container").value_or("");
    if (token.container.empty()) {
      return wrong("needs a 'container' that is a container's name");
    }
  }
  return token;
}

Result<void> check_against(const std::vector<Token>& others, const Token& token, const std::string& source) {
  for (const Token& other : others) {
    if (other.secret == token.secret) {
      return bad(source, fmt::format("token '{}' has the same secret as '{}'", token.name, other.name));
    }
    if (other.name == token.name && (other.tools != token.tools || other.container != token.container)) {
      return bad(source, fmt::format("token '{}' appears twice with different rights", token.name));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Token>> parse_tokens(const std::string& text, const std::string& source) {
  const std::string content = trimmed(text);
  if (!content.starts_with("{")) {
    const bool looks_like_json = content.starts_with('[') || content.starts_with('"');
    if (looks_like_json || !is_usable_secret(content)) {
      return fail(ErrorCode::bad_token_file,
                  fmt::format("{} has no token of at least {} characters", source, k_min_secret_length),
                  "Put one secret into it, for example from: openssl rand -hex 32");
    }
    return std::vector<Token>{{"token", content, {}, {}}};
  }
  const auto parsed = parse_strictly(content);
  const auto list = parsed && parsed->is_object() ? parsed->find("tokens") : json::const_iterator();
  if (!parsed || !parsed->is_object() || list == parsed->end() || !list->is_array() || list->empty()) {
    return bad(source, "not JSON with a list of 'tokens', or a key is repeated");
  }
  for (const auto& [key, value] : parsed->items()) {
    if (key != "tokens") {
      return bad(source, fmt::format("unknown key '{}'", printable_line(key, k_max_name_length)));
    }
  }
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto token = parse_token(list->at(i), i, source);
    if (!token) {
      return fail(token.error());
    }
    if (auto alone = check_against(tokens, *token, source); !alone) {
      return fail(alone.error());
    }
    tokens.push_back(std::move(*token));
  }
  return tokens;
}

Result<std::vector<Token>> read_token_file(const std::string& path) {
  const auto text = read_trusted_file(
      path, {.what = "token file", .code = ErrorCode::open_token_file, .forbidden_mode = S_IRWXG | S_IRWXO});
  if (!text) {
    return fail(text.error());
  }
  return *text ? parse_tokens(**text, path)
               : fail(ErrorCode::no_token_file, fmt::format("No such file or directory: {}", path),
                      "Create it, with mode 0600");
}

Result<std::vector<Token>> token_file_or_new(const std::string& path) {
  auto known = read_token_file(path);
  if (known || known.error().code != ErrorCode::no_token_file) {
    return known;
  }
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const Fd file(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file && errno == EEXIST) {
    return read_token_file(path);  // another server created it first
  }
  const std::string secret = to_hex(random_bytes(k_secret_bytes));
  static_assert(2 * k_secret_bytes >= k_safe_secret_length);
  if (!file || !write_all(file.get(), secret + "\n")) {
    return fail(ErrorCode::no_token_file, fmt::format("Cannot store a token in {}", path),
                "Pass a writable path with --token-file");
  }
  return std::vector<Token>{{"token", secret, {}, {}}};
}

}  // namespace dockbridge::mcp::http
