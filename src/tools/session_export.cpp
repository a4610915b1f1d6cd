#include "tools/session_export.hpp"

#include <fmt/format.h>

#include <map>

#include "tools/cell_run.hpp"
#include "util/encoding.hpp"
#include "util/text.hpp"
#include "wire/names.hpp"

namespace dockbridge::wire {

template <>
inline constexpr std::array<std::string_view, 2> k_names<tools::ExportFormat> = {"notebook", "script"};

}  // namespace dockbridge::wire

namespace dockbridge::tools {

namespace {

using mcp::json;
using mcp::ordered_json;
using sandbox::CellRecord;
using sandbox::CellSource;
using sandbox::MimeBundle;
using sandbox::Sandbox;
using sandbox::SessionEvent;
using sandbox::SessionHandle;

constexpr std::uint64_t k_max_cell_output = 64UL * 1024;
constexpr std::uint64_t k_max_cell_image = 1024UL * 1024;
/// Images and texts of all cells.
constexpr std::size_t k_max_notebook_outputs = 8UL * 1024 * 1024;
constexpr int k_max_file_names = 100;

/// Text as notebooks store it: a list of lines with their newlines.
ordered_json lines_of_source(std::string_view text) {
  ordered_json lines = ordered_json::array();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(std::string(text.substr(0, end)));
    text.remove_prefix(end);
  }
  return lines;
}

/// Makes the outputs of the cells of a notebook.
class NotebookOutputs {
 public:
  NotebookOutputs(Sandbox& sandbox, const SessionHandle& session, const sandbox::CallLimit& limit)
      : m_sandbox(sandbox), m_session(session), m_limit(limit) {}

  ordered_json of(const CellRecord& cell) {
    ordered_json outputs = ordered_json::array();
    const auto& from = cell.output_from;
    const auto& to = cell.end->output_before;
    add_stream(outputs, "stdout", sandbox::Stream::out, from.first, to.first);
    add_stream(outputs, "stderr", sandbox::Stream::err, from.second, to.second);
    for (const SessionEvent& display : cell.displays) {
      add_bundle(outputs, display.bundle, 0);
    }
    add_bundle(outputs, cell.end->bundle, cell.number);
    if (const auto& error = cell.end->error) {
      outputs.push_back({{"output_type", "error"},
                         {"ename", error->name},
                         {"evalue", error->value},
                         {"traceback", lines_without_ends(error->traceback)}});
    }
    return outputs;
  }

 private:
  static ordered_json lines_without_ends(std::string_view text) {
    ordered_json lines = ordered_json::array();
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      lines.push_back(std::string(text.substr(0, end)));
      text.remove_prefix(std::min(text.size(), end + 1));
    }
    return lines;
  }

  void add_stream(ordered_json& outputs, const char* name, sandbox::Stream stream, std::uint64_t from,
                  std::uint64_t to) {
    if (from >= to || m_bytes > k_max_notebook_outputs) {
      return;
    }
    const std::uint64_t shown = std::min(to - from, k_max_cell_output);
    const auto slice = m_sandbox.processes().read(m_session->id(), stream, from, shown, m_limit);
    if (!slice) {
      return;
    }
    std::string text = to_valid_utf8(slice->bytes).text;
    if (slice->bytes.size() < to - from) {
      text += fmt::format("\n[{} bytes left out]\n", to - from - slice->bytes.size());
    }
    m_bytes += text.size();
    outputs.push_back({{"output_type", "stream"}, {"name", name}, {"text", lines_of_source(text)}});
  }

  /// `cell`: the number of the cell whose value it is; 0: a display.
  void add_bundle(ordered_json& outputs, const MimeBundle& bundle, std::uint64_t cell) {
    ordered_json data = ordered_json::object();
    for (const sandbox::MimePart& part : bundle) {
      if (m_bytes > k_max_notebook_outputs) {
        break;
      }
      if (!part.file) {
        m_bytes += part.text.size();
        data[part.type] = lines_of_source(part.text);
      } else if (part.type.starts_with("image/") && !part.file->path.empty()) {
        const auto image = m_sandbox.files().whole(part.file->path, m_session->owner(), k_max_cell_image, m_limit);
        if (image) {
          m_bytes += image->bytes.size();
          data[part.type] = to_base64(image->bytes);
        }
      }
    }
    if (data.empty()) {
      return;
    }
    ordered_json output = {{"output_type", cell > 0 ? "execute_result" : "display_data"},
                           {"data", std::move(data)},
                           {"metadata", ordered_json::object()}};
    if (cell > 0) {
      output["execution_count"] = cell;
    }
    outputs.push_back(std::move(output));
  }

  Sandbox& m_sandbox;
  const SessionHandle& m_session;
  const sandbox::CallLimit& m_limit;
  std::size_t m_bytes = 0;
};

std::string make_script(const SessionEvent& history) {
  std::string script;
  for (const CellSource& source : history.history) {
    script += fmt::format("{}# %% cell {}\n{}{}", script.empty() ? "" : "\n", source.cell, source.code,
                          source.code.ends_with('\n') ? "" : "\n");
  }
  return script;
}

std::string make_notebook(const SessionEvent& history, const std::map<std::uint64_t, ordered_json>& outputs,
                          const std::string& version) {
  ordered_json cells = ordered_json::array();
  for (const CellSource& source : history.history) {
    const auto found = outputs.find(source.cell);
    cells.push_back({{"cell_type", "code"},
                     {"execution_count", source.cell},
                     {"id", fmt::format("cell-{}", source.cell)},
                     {"metadata", ordered_json::object()},
                     {"outputs", found == outputs.end() ? ordered_json::array() : found->second},
                     {"source", lines_of_source(source.code)}});
  }
  const ordered_json notebook = {
      {"cells", std::move(cells)},
      {"metadata",
       {{"kernelspec", {{"display_name", "Python 3"}, {"language", "python"}, {"name", "python3"}}},
        {"language_info", {{"name", "python"}, {"version", version}, {"file_extension", ".py"}}}}},
      {"nbformat", 4},
      {"nbformat_minor", 5}};
  return notebook.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::optional<ExportFormat> export_format_named(std::string_view name) {
  return wire::value_named<ExportFormat>(name);
}

Result<std::string> session_export(Sandbox& sandbox, const SessionHandle& session, ExportFormat format,
                                   const sandbox::CallLimit& limit) {
  const std::uint64_t number = new_request_number();
  const auto history =
      sandbox.sessions().ask(session, number, sandbox::request_line({{"op", "history"}, {"request", number}}), limit);
  if (!history) {
    return fail(history.error());
  }
  if (format == ExportFormat::script) {
    return make_script(*history);
  }
  std::vector<CellRecord> records;
  std::map<std::uint64_t, ordered_json> outputs;
  NotebookOutputs maker(sandbox, session, limit);
  const auto read = sandbox.sessions().for_each_cell(
      session->id(), [&](const CellRecord& cell) { outputs[cell.number] = maker.of(cell); }, limit);
  if (!read) {
    return fail(read.error());
  }
  const auto ready = session->with_track([](const sandbox::SessionTrack& track) { return track.ready(); });
  return make_notebook(*history, outputs, ready ? ready->version : "3");
}

Result<std::string> write_export(const ToolRequest& call, const std::string& name, const std::string& extension,
                                 const std::string& content) {
  for (int number = 1;; ++number) {
    const std::string suffix = number == 1 ? "" : fmt::format("-{}", number);
    sandbox::ChangeRequest request;
    request.path = fmt::format("{}/{}{}.{}", call.sandbox.files().base(), name, suffix, extension);
    request.owner = call.context.owner;
    sandbox::NewContent bytes;
    bytes.bytes = content;
    const auto written = call.sandbox.files().write(request, bytes, call.limit());
    if (written) {
      return written->path;
    }
    // An existing file of another origin is kept.
    const bool is_taken =
        written.error().code == ErrorCode::not_read || written.error().code == ErrorCode::file_changed;
    if (!is_taken || number == k_max_file_names) {
      return fail(written.error());
    }
  }
}

}  // namespace dockbridge::tools
