#pragma once

#include <algorithm>
#include <string>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "util/encoding.hpp"

namespace dockbridge::test {

inline constexpr const char* k_file_worker = "dockbridge-file";

/// The file tools of a server as functions.
struct FileTools {
  Server& server;

  [[nodiscard]] json read(const std::string& path, json more = json::object()) const {
    more["filePath"] = path;
    return server.call("file_read", std::move(more), seconds(60));
  }
  [[nodiscard]] json write(const std::string& path, const std::string& content, json more = json::object()) const {
    more["filePath"] = path;
    more["content"] = content;
    return server.call("file_write", std::move(more), seconds(60));
  }
  [[nodiscard]] json edit(const std::string& path, const std::string& from, const std::string& to,
                          json more = json::object()) const {
    more.update({{"filePath", path}, {"oldString", from}, {"newString", to}});
    return server.call("file_edit", std::move(more), seconds(60));
  }
  [[nodiscard]] json undo(const std::string& path, json more = json::object()) const {
    more["filePath"] = path;
    return server.call("file_undo", std::move(more), seconds(60));
  }
  [[nodiscard]] json ls(const std::string& path, json more = json::object()) const {
    more["path"] = path;
    return server.call("file_ls", std::move(more), seconds(60));
  }
  [[nodiscard]] json grep(const std::string& pattern, const std::string& path, json more = json::object()) const {
    more.update({{"pattern", pattern}, {"path", path}});
    return server.call("file_grep", std::move(more), seconds(60));
  }
  [[nodiscard]] json glob(const std::string& pattern, json more = json::object()) const {
    more["pattern"] = pattern;
    return server.call("file_glob", std::move(more), seconds(60));
  }
};

/// A container, a server that is connected to it, and the server's file tools.
struct Files : Connected {
  using Connected::Connected;
  FileTools tools{server};

  [[nodiscard]] std::string sh(const std::string& script) const { return container.sh(script); }
  /// Reads the bytes of a file without the file tools.
  [[nodiscard]] std::string bytes(const std::string& path) const {
    return *from_base64(sh("base64 -w0 '" + path + "'"));
  }
  void put(const std::string& path, const std::string& content) const {
    (void)sh("echo '" + to_base64(content) + "' | base64 -d > '" + path + "'");
  }
  [[nodiscard]] bool is_tidy() const { return sh("find /app -name '.dockbridge-*.tmp'").empty(); }
};

inline bool done(const json& result) {
  CAPTURE(result.dump(-1, ' ', false, json::error_handler_t::replace));
  CHECK(!result.value("isError", false));
  return !result.value("isError", false);
}

inline std::string error_code(const json& result) {
  CAPTURE(result.dump(-1, ' ', false, json::error_handler_t::replace));
  return field(error_of(result), "code");
}

inline bool says(const json& result, const std::string& part) {
  return text_of(result).find(part) != std::string::npos;
}

}  // namespace dockbridge::test
