#include "util/log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "util/file.hpp"
#include "util/text.hpp"

namespace dockbridge {

namespace {

constexpr std::size_t k_max_value_bytes = 2000;
constexpr std::array<const char*, 4> k_level_names = {"debug", "info", "warn", "error"};

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     milliseconds % 1000);
}

bool plain_word(std::string_view value) {
  return !value.empty() && value.find_first_of(" \"=") == std::string_view::npos;
}

std::string in_quotes(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
    }
    out.push_back(c);
  }
  return out + "\"";
}

}  // namespace

void Log::write(LogLevel level, std::string_view message, const Fields& fields) {
  if (level < m_level) {
    return;
  }
  const char* name = k_level_names.at(static_cast<std::size_t>(level));
  std::string line;
  if (m_format == LogFormat::json) {
    nlohmann::ordered_json record = {
        {"time", timestamp()}, {"level", name}, {"message", printable_line(message, k_max_value_bytes)}};
    for (const auto& [key, value] : fields) {
      record[std::string(key)] = printable_line(value, k_max_value_bytes);
    }
    line = record.dump();
  } else {
    line = fmt::format("{} {:5} {}", timestamp(), name, printable_line(message, k_max_value_bytes));
    for (const auto& [key, value] : fields) {
      const std::string shown = printable_line(value, k_max_value_bytes);
      line += fmt::format(" {}={}", key, plain_word(shown) ? shown : in_quotes(shown));
    }
  }
  line.push_back('\n');
  const MutexLock lock(m_mutex);
  (void)write_all(m_fd, line);  // there is nowhere to report a log that cannot be written
}

}  // namespace dockbridge
