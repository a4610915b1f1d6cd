#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "tools/file_report.hpp"
#include "tools/host_file.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;

constexpr std::size_t k_piece_bytes = 1024 * 1024;
constexpr milliseconds k_progress_interval{1000};

ordered_json host_path_schema(const Settings& settings) {
  return {{"type", "string"},
          {"description",
           fmt::format("Absolute path on the host, in {}.", fmt::join(settings.host_directories->paths(), " or "))}};
}

ordered_json upload_schema(const Settings& settings) {
  return arguments_schema(
      {{"hostPath", host_path_schema(settings)}, {"filePath", path_schema()}, {"expectedRevision", revision_schema()}},
      {"hostPath", "filePath"}, settings);
}

ordered_json changed_schema() {
  return result_schema(change_schema());
}

ordered_json download_schema(const Settings& settings) {
  return arguments_schema(
      {{"filePath", path_schema()},
       {"hostPath", host_path_schema(settings)},
       {"overwrite", {{"type", "boolean"}, {"description", "Replace a file that is there (default false)."}}}},
      {"filePath", "hostPath"}, settings);
}

ordered_json copied_schema() {
  return result_schema({{"path", {{"type", "string"}}},
                        {"hostPath", {{"type", "string"}}},
                        {"size", {{"type", "integer"}}},
                        {"revision", {{"type", "string"}, {"description", "names the content that was copied"}}}});
}

/// Finds the directory for a host path. Gets the container's mounts only if they are needed.
Result<HostPlace> host_place(const ToolRequest& call, const std::string& path) {
  return call.settings.host_directories->place(
      path, [&] { return call.sandbox.writable_mounts(call.context.interruption.token()); });
}

/// Reports progress about once a second.
class Progress {
 public:
  Progress(const mcp::CallContext& context, std::uint64_t total) : m_context(context), m_total(total) {}
  void report(std::uint64_t done) {
    if (m_context.wants_progress() && Clock::now() >= m_next) {
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
  return {ErrorCode::cancelled, "The copy was cancelled; nothing was changed"};
}

Result<sandbox::ChangedFile> upload_file(const ToolRequest& call, const std::string& host_path,
                                         const sandbox::ChangeRequest& request) {
  const auto place = host_place(call, host_path);
  const auto file = place ? open_host_file(*place, host_path) : fail(place.error());
  if (!file) {
    return fail(file.error());
  }
  struct stat info {};
  if (::fstat(file->get(), &info) != 0) {
    return fail(host_error(host_path, errno));
  }
  Progress progress(call.context, static_cast<std::uint64_t>(info.st_size));
  const auto limit = call.limit(call.settings.max_wait);
  sandbox::Upload upload = call.sandbox.files().upload(request.path);
  std::string piece(k_piece_bytes, '\0');
  std::uint64_t done = 0;
  ssize_t got = 0;
  do {
    if (call.context.interruption.token().stop_requested()) {
      return fail(interrupted());
    }
    got = ::read(file->get(), piece.data(), piece.size());
    if (got < 0) {
      return fail(host_error(host_path, errno));
    }
    if (auto sent = upload.append({piece.data(), static_cast<std::size_t>(got)}, limit); !sent) {
      return fail(sent.error());
    }
    done += static_cast<std::uint64_t>(got);
    progress.report(done);
  } while (got > 0);
  return upload.finish(request, {.bytes = {}, .is_text = false, .mode = info.st_mode & 0777U}, limit);
}

struct Downloaded {
  std::uint64_t size = 0;
  std::string revision;
};

Result<Downloaded> download_file(const ToolRequest& call, const std::string& path, const std::string& host_path,
                                 bool overwrite) {
  const auto limit = call.limit(call.settings.max_wait);
  const auto place = host_place(call, host_path);
  auto file = place ? HostFile::create(*place, host_path, overwrite) : fail(place.error());
  auto source = file ? call.sandbox.files().download(path, limit) : fail(file.error());
  if (auto sized = source ? file->resize(source->size()) : fail(source.error()); !sized) {
    return fail(sized.error());
  }
  Progress progress(call.context, source->size());
  while (true) {
    const auto piece = source->next(limit);
    if (!piece) {
      return fail(piece.error());
    }
    if (!*piece) {
      break;
    }
    if (auto written = file->write_at((*piece)->offset, (*piece)->bytes); !written) {
      return fail(written.error());
    }
    progress.report((*piece)->offset + (*piece)->bytes.size());
  }
  const auto finished = file->finish(source->mode());
  return finished ? Result<Downloaded>(Downloaded{source->size(), source->revision()}) : fail(finished.error());
}

ToolResult upload(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  const std::string host_path = arguments.required_text("hostPath");
  const sandbox::ChangeRequest request = read_change_request(call);
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const auto uploaded = upload_file(call, host_path, request);
  return uploaded ? report_change(call, *uploaded, "Copied to") : mcp::error_result(uploaded.error());
}

ToolResult download(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  const std::string host_path = arguments.required_text("hostPath");
  const std::string path = read_path(call, "filePath");
  const bool overwrite = arguments.flag("overwrite", false);
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const auto downloaded = download_file(call, path, host_path, overwrite);
  if (!downloaded) {
    return mcp::error_result(downloaded.error().code == ErrorCode::cancelled ? interrupted() : downloaded.error());
  }
  ToolResult result;
  result.text = fmt::format("Copied {} to {} on the host ({})", printable_line(path, 500),
                            printable_line(host_path, 500), human_bytes(downloaded->size));
  result.structured = {
      {"path", path}, {"hostPath", host_path}, {"size", downloaded->size}, {"revision", downloaded->revision}};
  result.effect_complete = true;
  result.outcome = fmt::format("{} bytes copied", downloaded->size);
  return result;
}

}  // namespace

const ToolCode k_file_upload{upload_schema, changed_schema, upload};
const ToolCode k_file_download{download_schema, copied_schema, download};

}  // namespace dockbridge::tools
