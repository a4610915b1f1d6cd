#include "tools/resources.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <thread>

#include "tools/cell_content.hpp"
#include "tools/process_report.hpp"
#include "tools/session_export.hpp"
#include "tools/toolbox.hpp"
#include "util/encoding.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::CallContext;
using mcp::json;
using sandbox::Sandbox;
using sandbox::Stream;

constexpr const char* k_container = "dockbridge://container";
constexpr const char* k_processes = "dockbridge://processes";
constexpr const char* k_stdout = "dockbridge://process/{processId}/stdout";
constexpr const char* k_stderr = "dockbridge://process/{processId}/stderr";
constexpr const char* k_file = "dockbridge://file/{path}";
constexpr const char* k_cell = "dockbridge://python/{session}/{cell}/{n}";
constexpr const char* k_notebook = "dockbridge://python/{session}/notebook";
constexpr const char* k_script = "dockbridge://python/{session}/script";
constexpr std::string_view k_process_prefix = "dockbridge://process/";
constexpr std::string_view k_file_prefix = "dockbridge://file/";
constexpr std::uint64_t k_max_blob_bytes = 3'500'000;
constexpr std::size_t k_max_output_bytes = 256 * 1024;
constexpr std::size_t k_listed = 100;
constexpr milliseconds k_watch_slice{30'000};
constexpr milliseconds k_completion_patience{5'000};

struct OutputUri {
  std::string process;
  Stream stream;
};

std::optional<OutputUri> parse_output_uri(const std::string& uri) {
  const std::size_t slash = uri.find('/', k_process_prefix.size());
  if (!uri.starts_with(k_process_prefix) || slash == std::string::npos) {
    return std::nullopt;
  }
  const std::string process = uri.substr(k_process_prefix.size(), slash - k_process_prefix.size());
  const std::string stream = uri.substr(slash + 1);
  const bool is_id = wire::is_process_id(process) || wire::process_number_in(process);
  if (!is_id || (stream != "stdout" && stream != "stderr")) {
    return std::nullopt;
  }
  return OutputUri{process, stream == "stdout" ? Stream::out : Stream::err};
}

}  // namespace

/// The URI of a session's history, or of a part of a result.
struct SessionUri {
  std::string session;  ///< name or process id
  std::optional<ExportFormat> format;
  std::uint64_t cell = 0;
  std::size_t part = 0;  ///< from 1
};

namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && number > 0;
  return is_number ? std::optional(number) : std::nullopt;
}

std::optional<SessionUri> parse_session_uri(const std::string& uri) {
  if (!uri.starts_with(k_python_prefix)) {
    return std::nullopt;
  }
  const std::string_view path = std::string_view(uri).substr(k_python_prefix.size());
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  SessionUri parsed{std::string(path.substr(0, slash)), std::nullopt};
  const std::string_view rest = path.substr(slash + 1);
  if (!wire::is_session_name(parsed.session) && !wire::is_process_id(parsed.session)) {
    return std::nullopt;
  }
  parsed.format = export_format_named(rest);
  if (parsed.format) {
    return parsed;
  }
  const std::size_t second = rest.find('/');
  const auto cell = parse_number(rest.substr(0, second));
  const auto part = second == std::string_view::npos ? std::nullopt : parse_number(rest.substr(second + 1));
  if (!cell || !part) {
    return std::nullopt;
  }
  parsed.cell = *cell;
  parsed.part = *part;
  return parsed;
}

/// The path in the URI of a file, which is absolute and percent-encoded.
std::optional<std::string> parse_file_uri(const std::string& uri) {
  if (!uri.starts_with(k_file_prefix)) {
    return std::nullopt;
  }
  auto path = from_percent_encoding(std::string_view(uri).substr(k_file_prefix.size()));
  if (path && !path->starts_with('/')) {
    path->insert(0, "/");
  }
  return path;
}

/// One deadline for all requests that reading a resource needs.
sandbox::CallLimit call_limit_of(const CallContext& context) {
  return {context.interruption.token(), Deadline::after(k_call_patience)};
}

json one_text(const std::string& uri, const char* type, const std::string& text) {
  return json::array({{{"uri", uri}, {"mimeType", type}, {"text", text}}});
}

/// Reports new output until the process has ended or the last subscription ends.
void follow(Sandbox& sandbox, mcp::Bulletin& bulletin, const std::string& uri, const std::string& process,
            const std::string& owner, const std::stop_token& stop) {
  auto snapshot = sandbox.processes().find(process, owner, stop);
  if (snapshot && snapshot->state.out.total + snapshot->state.err.total > 0) {
    // Output may have arrived between the subscription and this request.
    bulletin.publish({mcp::Notice::Kind::resource_updated, uri, owner});
  }
  while (snapshot && snapshot->state.running() && !stop.stop_requested()) {
    wire::WaitCondition until;
    until.known = sandbox::Offsets{snapshot->state.out.total, snapshot->state.err.total};
    auto later = sandbox.processes().wait(snapshot->state.id, k_watch_slice, until, stop);
    const bool changed = later && (later->state.out.total != snapshot->state.out.total ||
                                   later->state.err.total != snapshot->state.err.total || !later->state.running());
    if (changed) {
      bulletin.publish({mcp::Notice::Kind::resource_updated, uri, owner});
    }
    snapshot = std::move(later);
  }
}

/// Reports each change of a file until the last subscription ends.
void follow_file(Sandbox& sandbox, mcp::Bulletin& bulletin, const std::string& uri, const std::string& path,
                 const std::string& owner, const std::stop_token& stop) {
  const auto modified_at = [&]() -> Result<std::int64_t> {
    // Without an owner: the subscriber has not seen the content yet.
    const auto file = sandbox.files().read({.path = path, .owner = "", .limit = 0}, stop);
    return file                                           ? Result<std::int64_t>(file->modified_at_ms)
           : file.error().code == ErrorCode::no_such_file ? Result<std::int64_t>(0)
                                                          : fail(file.error());
  };
  auto known = modified_at();
  if (known) {
    // The file may have changed between the subscription and this request.
    bulletin.publish({mcp::Notice::Kind::resource_updated, uri, owner});
  }
  while (known && !stop.stop_requested()) {
    const auto changed = sandbox.files().await_change(path, *known, k_watch_slice, stop);
    if (!changed) {
      return;
    }
    if (*changed) {
      bulletin.publish({mcp::Notice::Kind::resource_updated, uri, owner});
      known = modified_at();
    }
  }
}

mcp::Completer complete_path(Sandbox& sandbox) {
  return [&sandbox](const std::string& typed, const CallContext& context) {
    std::vector<std::string> paths;
    const std::size_t slash = typed.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
    sandbox::ListRequest request;
    request.path = folder.starts_with('/') ? folder : sandbox.files().base() + "/" + folder;
    if (const auto listing = sandbox.files().list(request, k_completion_patience, call_limit_of(context))) {
      for (const sandbox::FileEntry& entry : listing->entries) {
        const std::string path = folder + entry.path;
        if (path.starts_with(typed) && paths.size() < k_listed) {
          paths.push_back(path + (entry.type == wire::FileType::directory ? "/" : ""));
        }
      }
    }
    return paths;
  };
}

}  // namespace

mcp::Completer complete_process_id(Sandbox& sandbox) {
  return [&sandbox](const std::string& typed, const CallContext& context) {
    std::vector<std::string> ids;
    if (const auto list =
            sandbox.processes().list(context.owner, k_listed, call_limit_of(context).capped(k_completion_patience))) {
      for (const wire::ProcessState& state : list->processes) {
        const std::string id = state.id.starts_with(typed) && typed.size() > 1 ? state.id : process_name(state);
        if (id.starts_with(typed)) {
          ids.push_back(id);
        }
      }
    }
    return ids;
  };
}

std::vector<mcp::Resource> SandboxResources::resources() const {
  return {{k_container, "container", "The container", "Which container this is, its agent, shell and workdir",
           "application/json"},
          {k_processes, "processes", "Processes",
           "Your processes in the container: those that run, then the latest finished ones", "application/json"}};
}

std::vector<mcp::ResourceTemplate> SandboxResources::templates() const {
  const std::map<std::string, mcp::Completer> ids = {{"processId", complete_process_id(m_sandbox)}};
  return {{k_stdout, "stdout", "Output of a process", "The end of what a process printed", "text/plain", ids},
          {k_stderr, "stderr", "Errors of a process", "The end of what a process printed to stderr", "text/plain", ids},
          {k_file,
           "file",
           "A file",
           "A file of the container, by its percent-encoded path",
           "application/octet-stream",
           {{"path", complete_path(m_sandbox)}},
           "file_ls"},
          {k_notebook, "notebook", "A Python session as a notebook", "The cells of a session and their results",
           "application/x-ipynb+json"},
          {k_script, "script", "A Python session as a script", "The code of a session", "text/x-python"},
          {k_cell, "cell-part", "A part of a result", "HTML, SVG or PDF that a Python cell has shown", "text/html"}};
}

std::string SandboxResources::tool_for(const std::string& uri) const {
  return uri.starts_with(k_file_prefix)                            ? "file_read"
         : uri.starts_with(k_python_prefix)                        ? "python"
         : uri == k_processes || uri.starts_with(k_process_prefix) ? "check_process"
                                                                   : "";
}

Result<json> SandboxResources::read(const std::string& uri, const CallContext& context) {
  if (uri == k_container) {
    const auto hello = m_sandbox.hello(context.interruption.token());
    if (!hello) {
      return fail(hello.error());
    }
    const json facts = {{"container", m_sandbox.container_name()},
                        {"workdir", m_sandbox.workdir()},
                        {"shell", hello->shell},
                        {"machine", hello->machine},
                        {"uid", hello->uid},
                        {"agent", hello->version}};
    return one_text(uri, "application/json", mcp::dump(facts));
  }
  if (uri == k_processes) {
    const auto list = m_sandbox.processes().list(context.owner, k_listed, call_limit_of(context));
    if (!list) {
      return fail(list.error());
    }
    json processes = json::array();
    for (const wire::ProcessState& state : list->processes) {
      processes.push_back(process_fields(state));
    }
    return one_text(uri, "application/json", mcp::dump({{"processes", processes}, {"leftOut", list->left_out}}));
  }
  if (const auto output = parse_output_uri(uri)) {
    return read_output(uri, output->process, output->stream, context);
  }
  if (const auto path = parse_file_uri(uri)) {
    return read_file(uri, *path, context);
  }
  if (const auto session = parse_session_uri(uri)) {
    return read_session(uri, *session, context);
  }
  return fail(ErrorCode::resource_not_found, fmt::format("Resource not found: {}", printable_line(uri, 200)));
}

Result<json> SandboxResources::read_output(const std::string& uri, const std::string& process, Stream stream,
                                           const CallContext& context) {
  const auto limit = call_limit_of(context);
  const auto found = m_sandbox.processes().find(process, context.owner, limit);
  if (!found) {
    return fail(ErrorCode::resource_not_found, found.error().message, found.error().next_step);
  }
  const wire::StreamState& stored = stream == Stream::out ? found->state.out : found->state.err;
  const std::uint64_t from = stored.total > k_max_output_bytes ? stored.total - k_max_output_bytes : 0;
  const auto slice = m_sandbox.processes().read(found->state.id, stream, from, k_max_output_bytes, limit);
  if (!slice) {
    return fail(slice.error());
  }
  const std::string cut =
      slice->offset > 0 ? fmt::format("[{} bytes before this are left out; check_process reads them]\n", slice->offset)
                        : "";
  return one_text(uri, "text/plain", cut + to_valid_utf8(slice->bytes).text);
}

Result<json> SandboxResources::read_file(const std::string& uri, const std::string& path, const CallContext& context) {
  const auto file = m_sandbox.files().whole(path, context.owner, k_max_blob_bytes, call_limit_of(context));
  if (!file) {
    const bool is_absent = file.error().code != ErrorCode::too_large && file.error().code != ErrorCode::file_changed;
    return is_absent ? fail(ErrorCode::resource_not_found, file.error().message, file.error().next_step)
                     : fail(file.error());
  }
  if (file->kind == sandbox::FileKind::text && is_valid_utf8(file->bytes)) {
    return one_text(uri, "text/plain", file->bytes);
  }
  const std::string type = file->kind == sandbox::FileKind::image ? file->type : "application/octet-stream";
  return json::array({{{"uri", uri}, {"mimeType", type}, {"blob", to_base64(file->bytes)}}});
}

Result<json> SandboxResources::read_session(const std::string& uri, const SessionUri& wanted,
                                            const CallContext& context) {
  const auto limit = call_limit_of(context);
  std::string process = wanted.session;
  if (!wire::is_process_id(process) && !wire::process_number_in(process)) {
    const auto latest = m_sandbox.sessions().latest({context.owner, wire::CodeKind::python, process}, limit);
    if (!latest) {
      return fail(latest.error());
    }
    if (!*latest) {
      return fail(ErrorCode::resource_not_found, "There is no session " + process);
    }
    process = (*latest)->id;
  }
  const auto found = m_sandbox.processes().find(process, context.owner, limit);
  if (!found || !found->state.session || found->state.session->kind != wire::CodeKind::python) {
    return fail(ErrorCode::resource_not_found, fmt::format("There is no Python session {}", wanted.session));
  }
  const auto session = m_sandbox.sessions().handle(found->state.id, context.owner);
  if (wanted.format) {
    const auto text = session_export(m_sandbox, session, *wanted.format, limit);
    const char* type = *wanted.format == ExportFormat::notebook ? "application/x-ipynb+json" : "text/x-python";
    return text ? Result<json>(one_text(uri, type, *text)) : fail(text.error());
  }
  std::optional<sandbox::MimePart> part;
  const auto read = m_sandbox.sessions().for_each_cell(
      found->state.id,
      [&](const sandbox::CellRecord& cell) {
        const auto parts = linked_parts(cell);
        if (cell.number == wanted.cell && wanted.part <= parts.size()) {
          part = *parts[wanted.part - 1];
        }
      },
      limit);
  if (!read) {
    return fail(read.error());
  }
  if (!part || (part->file && part->file->path.empty())) {
    return fail(ErrorCode::resource_not_found, fmt::format("Resource not found: {}", printable_line(uri, 200)));
  }
  if (!part->file) {
    return one_text(uri, part->type.c_str(), part->text);
  }
  const auto file = m_sandbox.files().whole(part->file->path, context.owner, k_max_blob_bytes, limit);
  if (!file) {
    return fail(ErrorCode::resource_not_found, file.error().message, file.error().next_step);
  }
  return is_valid_utf8(file->bytes)
             ? one_text(uri, part->type.c_str(), file->bytes)
             : json::array({{{"uri", uri}, {"mimeType", part->type}, {"blob", to_base64(file->bytes)}}});
}

std::shared_ptr<void> SandboxResources::watch(const std::string& uri, const std::string& owner) {
  const auto output = parse_output_uri(uri);
  const auto path = parse_file_uri(uri);
  if ((!output && !path) || m_bulletin == nullptr) {
    return nullptr;
  }
  auto claim = m_watches.claim(owner);
  if (!claim) {
    return nullptr;
  }
  auto follower = std::make_shared<std::jthread>([this, uri, output, path, owner](const std::stop_token& stop) {
    output ? follow(m_sandbox, *m_bulletin, uri, output->process, owner, stop)
           : follow_file(m_sandbox, *m_bulletin, uri, *path, owner, stop);
  });
  void* thread = follower.get();
  return {thread, [follower = std::move(follower), claim = std::move(claim)](void*) mutable {
            follower.reset();  // stops and waits for it
            claim.reset();
          }};
}

}  // namespace dockbridge::tools
