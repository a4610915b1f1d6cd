#include "tools/stream_parts.hpp"

#include <algorithm>
#include <limits>

namespace dockbridge::tools {

namespace {

void end_line(std::string& text) {
  if (!text.empty() && !text.ends_with('\n')) {
    text.push_back('\n');
  }
}

/// Takes the parts of one stream from the front.
class PartReader {
 public:
  explicit PartReader(const std::vector<StreamPart>& parts) : m_parts(parts) {}

  /// The bytes before the stream's offset `to`, and the rest of their last line.
  std::vector<StreamPart> take_until(std::uint64_t to) {
    std::vector<StreamPart> taken;
    while (m_part < m_parts.size() && m_parts[m_part].from + m_at < to) {
      const StreamPart& part = m_parts[m_part];
      std::size_t end = std::min<std::uint64_t>(part.bytes.size(), to - part.from);
      if (end > 0 && end < part.bytes.size() && part.bytes[end - 1] != '\n') {
        const std::size_t newline = part.bytes.find('\n', end);
        end = newline == std::string::npos ? part.bytes.size() : newline + 1;
      }
      taken.push_back({part.from + m_at, part.bytes.substr(m_at, end - m_at), m_at == 0 ? part.remark : ""});
      const bool is_over = end == part.bytes.size();
      m_part += is_over ? 1 : 0;
      m_at = is_over ? 0 : end;
    }
    return taken;
  }

 private:
  const std::vector<StreamPart>& m_parts;
  std::size_t m_part = 0;
  std::size_t m_at = 0;  // bytes of the part that were taken
};

/// Consecutive parts of one stream.
struct Run {
  bool is_err = false;
  std::vector<StreamPart> parts;
};

void append(std::vector<Run>& runs, bool is_err, std::vector<StreamPart> parts) {
  for (StreamPart& part : parts) {
    if (runs.empty() || runs.back().is_err != is_err) {
      runs.push_back({is_err, {}});
    }
    auto& known = runs.back().parts;
    if (!known.empty() && part.remark.empty() && known.back().from + known.back().bytes.size() == part.from) {
      known.back().bytes += part.bytes;  // rendered together: a character or a line may continue here
    } else {
      known.push_back(std::move(part));
    }
  }
}

}  // namespace

std::string text_of(const std::vector<StreamPart>& parts, const Rendering& render) {
  std::string text;
  for (const StreamPart& part : parts) {
    if (!part.remark.empty()) {
      end_line(text);
      text += part.remark + "\n";
    }
    text += render(part.bytes);
  }
  return text;
}

std::string interleaved_text(const std::vector<StreamPart>& out, const std::vector<StreamPart>& err,
                             const wire::WriteOrder& order, const Rendering& render) {
  constexpr std::uint64_t k_end = std::numeric_limits<std::uint64_t>::max();
  PartReader out_parts(out);
  PartReader err_parts(err);
  std::vector<Run> runs;
  for (const wire::OrderMark& mark : order) {
    append(runs, false, out_parts.take_until(mark.out));
    append(runs, true, err_parts.take_until(mark.err));
  }
  append(runs, false, out_parts.take_until(k_end));
  append(runs, true, err_parts.take_until(k_end));

  std::string text;
  bool in_err = false;
  for (const Run& run : runs) {
    const std::string shown = text_of(run.parts, render);
    if (!shown.empty() && run.is_err != in_err) {
      end_line(text);
      text += run.is_err ? "[stderr]\n" : "[stdout]\n";
      in_err = run.is_err;
    }
    text += shown;
  }
  return text;
}

}  // namespace dockbridge::tools
