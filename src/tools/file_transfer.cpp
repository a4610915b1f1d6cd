#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"
#include "util/beneath.hpp"
#include "util/file.hpp"
#include "util/random.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;

constexpr std::size_t k_piece_bytes = 1024 * 1024;
constexpr std::size_t k_token_length = 12;
constexpr milliseconds k_progress_interval{1000};

constexpr const char* k_upload_description =
    "Copy a file from the host into the container. Only files in the directories that the server was started with "
    "(--allow-host-path) can be copied. An existing file in the container must have been read first, as with "
    "file_write.\n"
    "Example: {\"hostPath\": \"/home/me/data/input.csv\", \"filePath\": \"/app/input.csv\", \"rationale\": \"get the "
    "data\"}";
constexpr const char* k_download_description =
    "Copy a file from the container to the host, into one of the directories that the server was started with "
    "(--allow-host-path). An existing file on the host is replaced only with overwrite: true.\n"
    "Example: {\"filePath\": \"/app/report.pdf\", \"hostPath\": \"/home/me/data/report.pdf\", \"rationale\": \"hand "
    "over the result\"}";

ordered_json host_path_schema(const Settings& settings) {
  return {
      {"type", "string"},
      {"description", fmt::format("Absolute path on the host, in {}.", fmt::join(settings.host_directories, " or "))}};
}

/// A path on the host, in a directory where it may be.
struct HostPlace {
  Fd directory;     ///< the one that was allowed
  std::string way;  ///< from there
};

Error host_error(const std::string& path, int number) {
  const std::string name = printable_line(path, 300);
  if (number == EXDEV) {
    return {"outside_host_path", fmt::format("'{}' leads out of the directories that are allowed on the host", name),
            "Use a path in one of them; --allow-host-path allows more"};
  }
  return {"host_file", fmt::format("'{}' on the host: {}", name, std::strerror(number)), "Check the path on the host"};
}

/// Only finds the directory; the kernel keeps the rest of the way beneath it.
Result<HostPlace> host_place(const std::string& path, const std::vector<std::string>& allowed) {
  if (path.find('\0') != std::string::npos) {
    return fail(host_error(path, EINVAL));
  }
  for (std::string base : allowed) {
    while (base.size() > 1 && base.back() == '/') {
      base.pop_back();
    }
    const std::string prefix = base == "/" ? base : base + "/";
    if (!path.starts_with(prefix)) {
      continue;
    }
    HostPlace place{Fd(::open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), path.substr(prefix.size())};
    if (!place.directory) {
      return fail(host_error(base, errno));
    }
    while (place.way.starts_with('/')) {
      place.way.erase(0, 1);
    }
    return place;
  }
  return fail(host_error(path, EXDEV));
}

/// Tells progress about once a second.
class Progress {
 public:
  Progress(const mcp::CallContext& context, std::uint64_t total) : m_context(context), m_total(total) {}
  void tell(std::uint64_t done) {
    if (m_context.report_progress && Clock::now() >= m_next) {
      m_context.report_progress(fmt::format("copied {} of {}", human_bytes(done), human_bytes(m_total)));
      m_next = Clock::now() + k_progress_interval;
    }
  }

 private:
  const mcp::CallContext& m_context;
  std::uint64_t m_total;
  Clock::time_point m_next = Clock::now() + k_progress_interval;
};

Error interrupted() {
  return {"cancelled", "the copy was interrupted; nothing was changed", "Call again"};
}

Result<sandbox::ChangedFile> upload_file(const ToolCall& call, const std::string& host_path,
                                         const sandbox::ChangeRequest& request) {
  const auto place = host_place(host_path, call.settings.host_directories);
  if (!place) {
    return fail(place.error());
  }
  const Fd file = open_confined(place->directory.get(), place->way, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    return fail(host_error(host_path, errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return fail("host_file", fmt::format("'{}' on the host is not a file", printable_line(host_path, 300)),
                "Only files can be copied; pack directories first");
  }
  Progress progress(call.context, static_cast<std::uint64_t>(info.st_size));
  sandbox::Files::Upload upload = call.sandbox.files().upload(request.path);
  std::string piece(k_piece_bytes, '\0');
  std::uint64_t done = 0;
  ssize_t got = 0;
  do {
    if (call.context.interruption.token().stop_requested()) {
      return fail(interrupted());
    }
    got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0) {
      return fail(host_error(host_path, errno));
    }
    if (auto sent = upload.append({piece.data(), static_cast<std::size_t>(got)}); !sent) {
      return fail(sent.error());
    }
    done += static_cast<std::uint64_t>(got);
    progress.tell(done);
  } while (got > 0);
  return upload.finish(request, {.bytes = {}, .is_text = false, .mode = info.st_mode & 0777U});
}

/// A file on the host that takes its place when it is complete, or is gone.
class HostFile {
 public:
  static Result<HostFile> create(const std::string& path, const std::vector<std::string>& allowed) {
    auto place = host_place(path, allowed);
    if (!place) {
      return fail(place.error());
    }
    const std::size_t slash = place->way.rfind('/');
    HostFile file;
    file.m_path = path;
    file.m_name = slash == std::string::npos ? place->way : place->way.substr(slash + 1);
    file.m_directory = open_confined(
        place->directory.get(), slash == std::string::npos ? "." : place->way.substr(0, slash), O_RDONLY | O_DIRECTORY);
    if (!file.m_directory) {
      return fail(host_error(path, errno));
    }
    if (file.m_name.empty() || file.m_name == "." || file.m_name == "..") {
      return fail("host_file", "the path on the host names a directory", "Give the path of a file");
    }
    file.m_temporary = ".dockbridge-" + random_token(k_token_length) + ".tmp";
    file.m_file =
        open_confined(file.m_directory.get(), file.m_temporary, O_WRONLY | O_CREAT | O_EXCL, Links::none, 0644);
    return file.m_file ? Result<HostFile>(std::move(file)) : fail(host_error(path, errno));
  }
  HostFile(HostFile&& other) noexcept
      : m_path(std::move(other.m_path)),
        m_directory(std::move(other.m_directory)),
        m_name(std::move(other.m_name)),
        m_temporary(std::exchange(other.m_temporary, "")),
        m_file(std::move(other.m_file)) {}
  HostFile& operator=(HostFile&&) = delete;
  ~HostFile() {
    if (!m_temporary.empty() && m_file) {
      ::unlinkat(m_directory.get(), m_temporary.c_str(), 0);
    }
  }

  Result<void> append(std::string_view bytes) {
    return write_all(m_file.get(), bytes) ? Result<void>() : fail(host_error(m_path, errno));
  }
  Result<void> finish(bool overwrite) {
    if (::fsync(m_file.get()) != 0 || ::renameat2(m_directory.get(), m_temporary.c_str(), m_directory.get(),
                                                  m_name.c_str(), overwrite ? 0U : RENAME_NOREPLACE) != 0) {
      return errno == EEXIST ? fail("host_file_exists", fmt::format("'{}' is on the host already", m_path),
                                    "Take another name, or replace it with overwrite: true")
                             : fail(host_error(m_path, errno));
    }
    m_temporary.clear();
    ::fsync(m_directory.get());
    return {};
  }

 private:
  HostFile() = default;

  std::string m_path;
  Fd m_directory;
  std::string m_name;
  std::string m_temporary;
  Fd m_file;
};

Result<std::uint64_t> download_file(const ToolCall& call, const std::string& path, const std::string& host_path,
                                    bool overwrite) {
  auto file = HostFile::create(host_path, call.settings.host_directories);
  if (!file) {
    return fail(file.error());
  }
  std::uint64_t done = 0;
  std::optional<Progress> progress;
  while (true) {
    const auto piece = call.sandbox.files().bytes(path, done, k_piece_bytes, call.context.interruption.token());
    if (!piece) {
      return fail(piece.error().code == "cancelled" ? interrupted() : piece.error());
    }
    if (piece->bytes.empty()) {
      break;
    }
    if (auto written = file->append(piece->bytes); !written) {
      return fail(written.error());
    }
    done += piece->bytes.size();
    if (!progress) {
      progress.emplace(call.context, piece->size);
    }
    progress->tell(done);
  }
  const auto finished = file->finish(overwrite);
  return finished ? Result<std::uint64_t>(done) : fail(finished.error());
}

ToolResult upload(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  const std::string host_path = arguments.required_text("hostPath");
  const sandbox::ChangeRequest request = read_change_request(call);
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const auto uploaded = upload_file(call, host_path, request);
  return uploaded ? tell_change(*uploaded, "Copied to") : mcp::error_result(uploaded.error());
}

ToolResult download(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  const std::string host_path = arguments.required_text("hostPath");
  const std::string path = read_path(arguments, "filePath", call.sandbox.files().base());
  const bool overwrite = arguments.flag("overwrite", false);
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const auto size = download_file(call, path, host_path, overwrite);
  if (!size) {
    return mcp::error_result(size.error());
  }
  ToolResult result;
  result.text = fmt::format("Copied {} to {} on the host ({})", printable_line(path, 500),
                            printable_line(host_path, 500), human_bytes(*size));
  result.structured = {{"path", path}, {"hostPath", host_path}, {"size", *size}};
  return result;
}

}  // namespace

ToolPlan file_upload(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "file_upload";
  tool.title = "Copy a file into the container";
  tool.description = k_upload_description;
  tool.input_schema = arguments_schema(
      {{"hostPath", host_path_schema(settings)}, {"filePath", path_schema()}, {"expectedRevision", revision_schema()}},
      {"hostPath", "filePath"}, settings);
  tool.output_schema = result_schema(change_schema());
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = true, .open_world = true};
  return {std::move(tool), upload};
}

ToolPlan file_download(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "file_download";
  tool.title = "Copy a file out of the container";
  tool.description = k_download_description;
  tool.input_schema = arguments_schema(
      {{"filePath", path_schema()},
       {"hostPath", host_path_schema(settings)},
       {"overwrite", {{"type", "boolean"}, {"description", "Replace a file that is there (default false)."}}}},
      {"filePath", "hostPath"}, settings);
  tool.output_schema = result_schema(
      {{"path", {{"type", "string"}}}, {"hostPath", {{"type", "string"}}}, {"size", {{"type", "integer"}}}});
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = true, .open_world = true};
  return {std::move(tool), download};
}

}  // namespace dockbridge::tools
