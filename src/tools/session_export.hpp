#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

/// Form in which the history of a Python session can be saved.
enum class ExportFormat : std::uint8_t { notebook, script };

std::optional<ExportFormat> export_format_named(std::string_view name);

/// The cells of a live session as a notebook (nbformat 4, with values, errors and output) or a script. Error
/// `session_busy` while a cell runs.
Result<std::string> session_export(sandbox::Sandbox& sandbox, const sandbox::SessionHandle& session,
                                   ExportFormat format, const sandbox::CallLimit& limit);

/// Writes an export to a new file in the workdir. Returns its path.
Result<std::string> write_export(const ToolRequest& call, const std::string& name, const std::string& extension,
                                 const std::string& content);

}  // namespace dockbridge::tools
