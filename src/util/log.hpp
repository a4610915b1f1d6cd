#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/mutex.hpp"

namespace dockbridge {

enum class LogLevel { debug, info, warn, error, off };
enum class LogFormat { text, json };

/// Writes whole lines to a descriptor (stderr), never a raw control character. Any thread may call it.
/// Callers pass no environment values, tokens or process input.
class Log {
 public:
  using Fields = std::vector<std::pair<std::string_view, std::string>>;

  Log(int fd, LogLevel level, LogFormat format) : m_fd(fd), m_level(level), m_format(format) {}

  void debug(std::string_view message, const Fields& fields = {}) { write(LogLevel::debug, message, fields); }
  void info(std::string_view message, const Fields& fields = {}) { write(LogLevel::info, message, fields); }
  void warn(std::string_view message, const Fields& fields = {}) { write(LogLevel::warn, message, fields); }
  void error(std::string_view message, const Fields& fields = {}) { write(LogLevel::error, message, fields); }

 private:
  void write(LogLevel level, std::string_view message, const Fields& fields);

  int m_fd GUARDED_BY(m_mutex);
  LogLevel m_level;
  LogFormat m_format;
  Mutex m_mutex;  // held while a line is written, so that lines do not mix
};

}  // namespace dockbridge
