#include "tools/cell_content.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/file_report.hpp"
#include "util/encoding.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::json;
using sandbox::CellRecord;
using sandbox::MimeBundle;
using sandbox::MimePart;
using sandbox::SavedFile;

constexpr std::size_t k_max_images = 8;
constexpr std::uint64_t k_max_shown_image = 1024UL * 1024;
/// Pixels on the longer side. Models scale larger images down.
constexpr std::uint32_t k_max_shown_side = 1568;
constexpr std::size_t k_max_links = 16;

bool is_image(const MimePart& part) {
  return part.type == "image/png" || part.type == "image/jpeg" || part.type == "image/gif" || part.type == "image/webp";
}

/// Types that only people can view. A reply links to them.
bool is_linked(const MimePart& part) {
  return part.type == "text/html" || part.type == "image/svg+xml" || part.type == "application/pdf";
}

const MimePart* image_of(const MimeBundle& bundle) {
  const auto found = std::find_if(bundle.begin(), bundle.end(), is_image);
  return found == bundle.end() ? nullptr : &*found;
}

std::string size_text(const SavedFile& file) {
  return file.width > 0 && file.height > 0 ? fmt::format("{}x{}", file.width, file.height) : human_bytes(file.bytes);
}

/// Collects the content of one cell.
class CellContentMaker {
 public:
  CellContentMaker(const ToolRequest& call, const std::string& process, const CellRecord& cell, std::size_t max_bytes)
      : m_call(call), m_process(process), m_cell(cell), m_room(max_bytes) {}

  CellContent make() {
    for (const sandbox::SessionEvent& display : m_cell.displays) {
      add(display.bundle, false);
    }
    if (m_cell.displays_left_out > 0) {
      add_line(fmt::format("[{} more displays are left out]", m_cell.displays_left_out));
    }
    if (m_cell.end) {
      add(m_cell.end->bundle, true);
    }
    add_links();
    return std::move(m_content);
  }

 private:
  void add(const MimeBundle& bundle, bool is_value) {
    if (const MimePart* image = image_of(bundle); image != nullptr && image->file) {
      add_image(*image);
      return;
    }
    const MimePart* part = nullptr;
    const std::string text = model_text(bundle);
    for (const MimePart& candidate : bundle) {
      part = candidate.text == text && candidate.whole_length > 0 ? &candidate : part;
    }
    if (!text.empty()) {
      const std::string shown =
          cut_text(text, part != nullptr ? part->whole_length : 0, m_room, is_value ? "_ holds the value" : "");
      add_line(shown);
      m_room -= std::min(m_room, shown.size());
    }
    for (const MimePart& other : bundle) {
      if (other.file && !is_linked(other)) {
        add_line(file_line(other));
      }
    }
  }

  void add_line(const std::string& line) {
    m_content.text += (m_content.text.empty() || m_content.text.ends_with('\n') ? "" : "\n") + line;
  }

  [[nodiscard]] std::string shown_path(const SavedFile& file) const {
    const std::string& workdir = m_call.sandbox.workdir();
    return file.path.starts_with(workdir + "/") ? file.path.substr(workdir.size() + 1) : file.path;
  }

  [[nodiscard]] std::string file_line(const MimePart& part) const {
    const SavedFile& file = *part.file;
    return file.path.empty() ? fmt::format("[{} of {} was not stored: {}]", part.type, human_bytes(file.bytes),
                                           printable_line(file.problem, 200))
                             : fmt::format("[{}: {}, {}]", part.type, shown_path(file), size_text(file));
  }

  void add_image(const MimePart& image) {
    const SavedFile& file = *image.file;
    if (file.path.empty()) {
      add_line(file_line(image));
      return;
    }
    std::string line = fmt::format("[image: {}, {}", shown_path(file), size_text(file));
    if (m_images == k_max_images) {
      add_line(line + ", not shown]");
      return;
    }
    const bool is_large = std::max(file.width, file.height) > k_max_shown_side || file.bytes > k_max_shown_image;
    const auto add_block = [&](const std::string& bytes, const std::string& type) {
      ++m_images;
      m_content.blocks.push_back({{"type", "image"}, {"data", to_base64(bytes)}, {"mimeType", type}});
    };
    const auto limit = m_call.limit();
    if (is_large && (image.type == "image/png" || image.type == "image/jpeg")) {
      const auto scaled = m_call.sandbox.files().scaled_image(file.path, m_call.context.owner, k_max_shown_side, limit);
      if (scaled) {
        add_block(scaled->bytes, scaled->type);
        add_line(line + (scaled->width == file.width
                             ? fmt::format(", shown as {} of {}]", scaled->type, human_bytes(scaled->bytes.size()))
                             : fmt::format(", shown as {}x{}]", scaled->width, scaled->height)));
      } else {
        add_line(line + ", not shown: " + printable_line(scaled.error().message, 200) + "]");
      }
      return;
    }
    const auto whole = m_call.sandbox.files().whole(file.path, m_call.context.owner, k_max_shown_image, limit);
    if (whole) {
      add_block(whole->bytes, image.type);
      add_line(line + "]");
    } else {
      add_line(line + ", not shown: " + printable_line(whole.error().message, 200) + "]");
    }
  }

  void add_links() {
    const auto parts = linked_parts(m_cell);
    for (std::size_t i = 0; i < std::min(parts.size(), k_max_links); ++i) {
      const std::size_t slash = parts[i]->type.find('/');
      const std::string kind = parts[i]->type.substr(slash + 1, parts[i]->type.find('+') - slash - 1);
      m_content.blocks.push_back({{"type", "resource_link"},
                                  {"uri", fmt::format("{}{}/{}/{}", k_python_prefix, m_process, m_cell.number, i + 1)},
                                  {"name", fmt::format("cell-{}-{}.{}", m_cell.number, i + 1, kind)},
                                  {"mimeType", parts[i]->type},
                                  {"annotations", {{"audience", {"user"}}}}});
    }
  }

  const ToolRequest& m_call;
  const std::string& m_process;
  const CellRecord& m_cell;
  std::size_t m_room;
  std::size_t m_images = 0;
  CellContent m_content;
};

}  // namespace

std::string model_text(const MimeBundle& bundle) {
  for (const char* type : {"text/markdown", "text/plain", "text/latex", "application/json"}) {
    if (const MimePart* part = sandbox::find_part(bundle, type); part != nullptr && !part->file) {
      return part->text;
    }
  }
  return "";
}

std::string cut_text(const std::string& text, std::uint64_t whole_length, std::size_t max_bytes,
                     std::string_view rest) {
  std::string shown = text.size() > max_bytes ? text.substr(0, max_bytes) : text;
  shown.resize(shown.size() - incomplete_utf8_tail(shown));
  const std::size_t left_out = text.size() - shown.size();
  const std::string hint = rest.empty() ? "" : "; " + std::string(rest);
  if (whole_length > 0) {
    return shown + fmt::format("\n[cut, it has {} characters{}]", whole_length, hint);
  }
  return left_out == 0 ? shown : shown + fmt::format("\n[{} bytes left out{}]", left_out, hint);
}

std::vector<const MimePart*> linked_parts(const CellRecord& cell) {
  std::vector<const MimePart*> parts;
  const auto add = [&](const MimeBundle& bundle) {
    for (const MimePart& part : bundle) {
      if (is_linked(part)) {
        parts.push_back(&part);
      }
    }
  };
  for (const sandbox::SessionEvent& display : cell.displays) {
    add(display.bundle);
  }
  if (cell.end) {
    add(cell.end->bundle);
  }
  return parts;
}

json bundle_fields(const MimeBundle& bundle) {
  json fields = json::object();
  for (const MimePart& part : bundle) {
    if (!part.file) {
      fields[part.type] = part.text;
    } else if (part.file->path.empty()) {
      fields[part.type] = {{"bytes", part.file->bytes}, {"error", part.file->problem}};
    } else {
      fields[part.type] = {{"bytes", part.file->bytes}, {"path", part.file->path}};
    }
  }
  return fields;
}

CellContent show_cell(const ToolRequest& call, const std::string& process, const CellRecord& cell,
                      std::size_t max_bytes) {
  return CellContentMaker(call, process, cell, max_bytes).make();
}

}  // namespace dockbridge::tools
