#include "tools/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/process_report.hpp"
#include "util/terminal_transcript.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::json;
using mcp::ordered_json;

/// Output before the shown part that is rendered to find the line that it continues.
constexpr std::uint64_t k_max_context_bytes = 4096;
/// Attempts to render output so that its text fits into a reply.
constexpr int k_max_view_attempts = 6;

std::string without_final_newline(std::string text) {
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

std::string valid_text(const std::string& bytes, std::size_t& replaced) {
  ValidText valid = to_valid_utf8(bytes);
  replaced += valid.replaced_bytes;
  return std::move(valid.text);
}

std::string screen_text(const sandbox::Screen& screen) {
  const std::string cursor = screen.cursor_visible ? fmt::format("cursor at line {}, column {}", screen.cursor_row + 1,
                                                                 screen.cursor_column + 1)
                                                   : "no cursor";
  return fmt::format("SCREEN ({}x{}, {}):\n{}", screen.size.columns, screen.size.rows, cursor,
                     screen.text.empty() ? "(blank)" : without_final_newline(screen.text));
}

}  // namespace

void add_view_arguments(ordered_json& properties) {
  properties["maxOutput"] = {{"type", "integer"}, {"description", "Bytes of output (default 9,500)"}};
  properties["raw"] = {{"type", "boolean"}, {"description", "Keep colours, carriage returns, repeated lines"}};
  properties["screen"] = {{"type", "boolean"}, {"description", "With tty: true shows the screen, false the output"}};
}

ViewRequest read_view_arguments(Arguments& arguments) {
  ViewRequest request;
  request.output.raw = arguments.flag("raw", false);
  if (const auto bytes = arguments.integer("maxOutput", k_min_max_output, k_max_max_output)) {
    request.output.max_bytes = static_cast<std::size_t>(*bytes);
    request.output.excerpt = request.output.max_bytes;
    request.output.max_lines = 0;
  }
  if (arguments.has("screen")) {
    request.screen = arguments.flag("screen", false);
  }
  return request;
}

namespace {

/// The last part of the output before an offset.
struct Context {
  std::string text;
  bool from_start = true;  ///< `text` is all of the output before the offset
};

Context context_before(sandbox::Sandbox& sandbox, const sandbox::Snapshot& snapshot, std::uint64_t offset,
                       const sandbox::CallLimit& limit) {
  const std::uint64_t from = offset - std::min(offset, k_max_context_bytes);
  std::string bytes;
  if (snapshot.whole) {
    bytes = snapshot.out.substr(std::min<std::size_t>(from, snapshot.out.size()), offset - from);
  } else if (offset > 0) {
    const auto slice = sandbox.processes().read(snapshot.state.id, sandbox::Stream::out, from, offset - from, limit);
    bytes = slice && slice->offset == from ? slice->bytes : "";
  }
  const bool from_start = from == 0 && bytes.size() == offset;
  // The first line may begin inside a character or an escape sequence.
  const std::size_t whole_lines = from_start ? 0 : bytes.find('\n') + 1;  // npos + 1 is 0
  return {to_valid_utf8(bytes.substr(whole_lines)).text, from_start};
}

/// Removes the first line if it consists of the prompt and the typed text.
std::string without_echo(std::string text, const std::string& prompt, std::string_view typed) {
  typed = typed.substr(0, typed.find_first_of("\r\n"));
  const std::size_t end = text.find('\n');
  const bool is_echo = end != std::string::npos && !typed.empty() && text.starts_with(prompt) &&
                       std::string_view(text).substr(prompt.size(), end - prompt.size()) == typed;
  return is_echo ? text.substr(end + 1) : std::move(text);
}

/// Renders the content for programs. Each piece between two gaps is rendered by itself.
void render_content(ShownStream& out, const Context& context, const std::string& typed, wire::TerminalSize size) {
  const std::string printed = std::exchange(out.content, "");
  Context before = context;
  std::string_view echo = typed;
  std::size_t begin = 0;
  const auto render_until = [&](std::size_t end) {
    const auto rendered = transcribe({before.text, std::string_view(printed).substr(begin, end - begin), size.columns,
                                      size.rows, before.from_start});
    out.content += without_echo(rendered.text, rendered.prompt, echo);
    begin = end;
    before = {"", false};
    echo = {};
  };
  for (Gap& gap : out.gaps) {
    render_until(gap.at);
    gap.at = out.content.size();
  }
  render_until(printed.size());
}

/// Replaces terminal output by the lines that it left on the terminal. False if it also changed other lines.
bool render_lines(ShownOutput& output, const Context& context, const std::string& typed, wire::TerminalSize size) {
  TerminalTranscript rendered =
      transcribe({context.text, output.out.text, size.columns, size.rows, context.from_start});
  std::string lines = without_echo(std::move(rendered.text), rendered.prompt, typed);
  output.out.text = output.text = fold_repeated_lines(lines);  // a terminal has one stream
  if (output.out.gaps.empty()) {
    output.out.content = std::move(lines);
  } else {
    render_content(output.out, context, typed, size);
  }
  return rendered.is_complete;
}

/// Notes which part of the output the view shows.
void note_range(View& view, const wire::ProcessState& state, const OutputRequest& request) {
  if (request.tail_lines) {
    return;
  }
  view.from = request.since.value_or(request.shown);
  const Cursor shown = request.since ? Cursor{} : request.shown;
  view.before = {std::min(shown.out, state.out.total), std::min(shown.err, state.err.total)};
}

/// Keeps the rows around the cursor that fit into `most` bytes, with a remark in place of the others.
std::string shorten_screen(const std::string& text, std::size_t cursor_row, std::size_t most) {
  if (text.size() <= most) {
    return text;
  }
  std::vector<std::string_view> rows;
  for (std::string_view rest = text; !rest.empty();) {
    rows.push_back(rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1));
    rest.remove_prefix(rows.back().size());
  }
  std::size_t first = std::min(cursor_row, rows.size() - 1);
  std::size_t end = first + 1;
  std::size_t bytes = rows[first].size();
  for (bool grew = true; grew;) {
    grew = false;
    if (end < rows.size() && bytes + rows[end].size() <= most) {
      bytes += rows[end++].size();
      grew = true;
    }
    if (first > 0 && bytes + rows[first - 1].size() <= most) {
      bytes += rows[--first].size();
      grew = true;
    }
  }
  const auto remark = [&](std::size_t from, std::size_t to) {
    return from == to ? std::string()
                      : fmt::format("[lines {}-{} left out; maxOutput: {} shows them]\n", from + 1, to, text.size());
  };
  std::string kept = remark(0, first);
  for (std::size_t row = first; row < end; ++row) {
    kept += rows[row];
  }
  if (end < rows.size() && !kept.ends_with('\n')) {
    kept.push_back('\n');
  }
  return kept + remark(end, rows.size());
}

View screen_view(sandbox::Screen screen, const wire::ProcessState& state, const Cursor& next, std::size_t most) {
  View view;
  view.output.out.next = next.out;
  view.output.err.next = next.err;
  view.output.out.total = state.out.total;
  view.output.err.total = state.err.total;
  screen.text =
      shorten_screen(plain_terminal_text(valid_text(screen.text, view.output.out.replaced)), screen.cursor_row, most);
  view.screen = std::move(screen);
  return view;
}

Result<View> look_at_terminal(sandbox::Sandbox& sandbox, const sandbox::Snapshot& snapshot, const ViewRequest& request,
                              const sandbox::CallLimit& limit) {
  const wire::ProcessState& state = snapshot.state;
  const Cursor begin = request.output.since.value_or(request.output.shown);
  const std::size_t most_bytes = request.output.max_bytes;
  auto screen = sandbox.processes().screen(state.id, limit);
  if (request.screen.value_or(false)) {
    // A reply with the screen shows no output, so the cursor does not move.
    return screen ? Result<View>(screen_view(std::move(*screen), state, begin, most_bytes)) : fail(screen.error());
  }
  const auto in_place_of_lines = [&] {
    View view = screen_view(std::move(*screen), state, {state.out.total, state.err.total}, most_bytes);
    view.from = begin;
    return view;
  };
  const bool may_show = screen && state.running() && !request.screen && !request.output.tail_lines;
  if (may_show && screen->alternate) {
    return in_place_of_lines();
  }
  OutputRequest raw = request.output;
  raw.raw = true;
  View view;
  for (int attempt = 1;; ++attempt) {
    auto output = collect_output(sandbox, snapshot, raw, limit);
    if (!output) {
      return fail(output.error());
    }
    view.output = std::move(*output);
    if (request.output.raw) {
      break;
    }
    const Context context = context_before(sandbox, snapshot, begin.out, limit);
    const bool is_all =
        render_lines(view.output, context, request.typed, screen ? screen->size : wire::k_default_terminal);
    // If the output was cut, the missing part may show that the program still uses the screen.
    const bool may_draw = screen && screen->addressed > begin.out && view.output.rest();
    if (may_show && (!is_all || may_draw)) {
      return in_place_of_lines();
    }
    const auto less = request_less(request.output, view.output.text, view.output.bytes());
    if (!less || attempt == k_max_view_attempts) {
      break;
    }
    raw.max_bytes = less->max_bytes;
  }
  note_range(view, state, request.output);
  return view;
}

}  // namespace

Result<View> look_at(sandbox::Sandbox& sandbox, const sandbox::Snapshot& snapshot, const ViewRequest& request,
                     const sandbox::CallLimit& limit) {
  View view;
  const wire::ProcessState& state = snapshot.state;
  // Lines found by grep and a screen do not move the cursor.
  const Cursor begin = request.output.since.value_or(request.output.shown);
  view.output.out.next = begin.out;
  view.output.err.next = begin.err;
  if (request.grep) {
    auto found = sandbox.processes().grep(state.id, *request.grep, limit);
    if (!found) {
      return fail(found.error());
    }
    auto& [out, err, text] = view.output;
    found->out = valid_text(found->out, out.replaced);
    found->err = valid_text(found->err, err.replaced);
    text = interleaved_text({{0, found->out}}, {{0, found->err}}, {},
                            [](std::string_view bytes) { return std::string(bytes); });
    if (text.size() > request.output.max_bytes) {
      text.resize(text.rfind('\n', request.output.max_bytes) + 1);  // 0 if the first line does not fit
      view.is_found_cut = true;
    }
    view.found = std::move(*found);
    return view;
  }
  if (state.terminal || request.screen.value_or(false)) {
    return look_at_terminal(sandbox, snapshot, request, limit);
  }
  auto output = collect_output(sandbox, snapshot, request.output, limit);
  if (!output) {
    return fail(output.error());
  }
  view.output = std::move(*output);
  note_range(view, state, request.output);
  return view;
}

std::string view_text(const View& view) {
  if (view.screen) {
    return screen_text(*view.screen);
  }
  return without_final_newline(view.output.text);
}

bool may_wait_for_input(const wire::ProcessState& state, const View& view) {
  const bool is_unfinished = view.screen ? view.screen->cursor_visible && view.screen->cursor_column > 0
                                         : !view.output.text.empty() && !view.output.text.ends_with('\n');
  return state.running() && state.waits_for_input == wire::WaitsForInput::unknown && is_unfinished && !view.found;
}

std::string shown_before_text(const ToolRequest& call, const wire::ProcessState& state, const View& view) {
  const auto [out, err] = view.before;
  std::string bytes = out > 0 ? fmt::format("stdout 0-{}", out) : "";
  if (err > 0) {
    bytes += fmt::format("{}stderr 0-{}", bytes.empty() ? "" : ", ", err);
  }
  if (bytes.empty()) {
    return "";
  }
  const Cursor whole = call.shown->known_whole(call.context.client, state.id);
  return whole.out < out || whole.err < err
             ? fmt::format("[{} shown before in part; since: \"{}\" returns the rest]", bytes, whole.text())
             : fmt::format("[{} shown before; since: \"0:0\" returns it]", bytes);
}

void count_as_shown(const ToolRequest& call, const wire::ProcessState& state, const View& view,
                    mcp::ToolResult& result) {
  if (!view.from) {
    return;
  }
  auto counted =
      call.shown->when_delivered(call.context.client, state.id, *view.from, view.output.cursor(), view.output.rest());
  result.on_delivered = [counted = std::move(counted), earlier = std::move(result.on_delivered)] {
    counted();
    if (earlier) {
      earlier();
    }
  };
}

std::string view_text_with_rest(const ToolRequest& call, const wire::ProcessState& state, const View& view,
                                bool states_end) {
  const ShownOutput& output = view.output;
  const auto rest = output.rest();
  if (!rest) {
    return view_text(view);
  }
  const std::uint64_t left_out = output.out.left_out + output.err.left_out;
  std::string line = states_end && !state.running() ? end_text(state, false) + ". " : "";
  const Cursor from = view.from.value_or(view.before);
  const std::uint64_t asked_for =
      output.out.total - std::min(from.out, output.out.total) + output.err.total - std::min(from.err, output.err.total);
  line += fmt::format("{} of {} bytes left out.", left_out, asked_for);
  if (left_out > output.out.not_kept + output.err.not_kept) {
    const std::string hint =
        call.hint(fmt::format("check_process {} with since: \"{}\" reads them.", process_name(state), rest->text()));
    line += " " + (hint.empty() ? "Raise maxOutput, or write the output to a file." : hint);
  }
  return fmt::format("[{}]\n{}", line, view_text(view));
}

mcp::json view_facts(const wire::ProcessState& state, const View& view) {
  mcp::json facts = process_facts(state);
  facts["cursor"] = view.output.cursor().text();
  return facts;
}

std::vector<std::string> view_notes(const View& view) {
  std::vector<std::string> notes;
  const std::size_t replaced = view.output.out.replaced + view.output.err.replaced;
  if (replaced > 0) {
    notes.push_back(fmt::format("{} not UTF-8, shown as U+FFFD",
                                replaced == 1 ? "1 byte is" : fmt::format("{} bytes are", replaced)));
  }
  if (const auto& found = view.found) {
    const std::uint64_t matches = found->matches.first + found->matches.second;
    const std::uint64_t shown = found->shown.first + found->shown.second;
    notes.push_back(
        view.is_found_cut
            ? fmt::format("{} lines match, only the first are shown; narrow the pattern or raise maxOutput", matches)
        : matches == 1     ? "1 line matches"
        : shown == matches ? fmt::format("{} lines match", matches)
                           : fmt::format("{} lines match, {} are shown; narrow the pattern", matches, shown));
  }
  return notes;
}

void add_view_fields(json& fields, const View& view) {
  fields["cursor"] = view.output.cursor().text();
  if (const auto& screen = view.screen) {
    fields["screen"] = {{"text", screen->text},
                        {"columns", screen->size.columns},
                        {"rows", screen->size.rows},
                        {"cursorRow", screen->cursor_row + 1},
                        {"cursorColumn", screen->cursor_column + 1},
                        {"cursorVisible", screen->cursor_visible},
                        {"fullScreen", screen->alternate}};
    return;
  }
  if (const auto& found = view.found) {
    fields["matches"] = found->matches.first + found->matches.second;
    fields["stdoutFound"] = found->out;
    fields["stderrFound"] = found->err;
    return;
  }
  for (const auto& [name, stream] : {std::pair("stdout", &view.output.out), std::pair("stderr", &view.output.err)}) {
    auto gaps = json::array();
    for (const Gap& gap : stream->gaps) {
      gaps.push_back({{"at", gap.at}, {"from", gap.from}, {"to", gap.to}, {"notStored", gap.not_stored}});
    }
    const std::string prefix = name;
    fields[prefix] = stream->content;
    fields[prefix + "From"] = stream->from;
    fields[prefix + "LeftOut"] = stream->left_out;
    fields[prefix + "Gaps"] = std::move(gaps);
    fields[prefix + "Replaced"] = stream->replaced;
  }
}

void add_view_schema(ordered_json& properties) {
  const ordered_json text = {{"type", "string"}};
  const ordered_json number = {{"type", "integer"}};
  const ordered_json flag = {{"type", "boolean"}};
  const auto described = [](ordered_json schema, const std::string& description) {
    schema["description"] = description;
    return schema;
  };
  const ordered_json gap = object_schema({{"at", described(number, "position in the text, in bytes of its UTF-8")},
                                          {"from", described(number, "offset in the stream")},
                                          {"to", described(number, "offset after the last byte")},
                                          {"notStored", described(number, "bytes of it that cannot be read")}},
                                         {"at", "from", "to", "notStored"});
  for (const std::string name : {"stdout", "stderr"}) {
    properties[name] = text;
    properties[name + "From"] = described(number, "offset in the stream at which the text or its first gap begins");
    properties[name + "LeftOut"] = described(number, "bytes not shown in " + name);
    properties[name + "Gaps"] = {{"type", "array"}, {"items", gap}, {"description", "the bytes not shown in " + name}};
    properties[name + "Replaced"] = described(number, "bytes that are not UTF-8, each shown as U+FFFD");
  }
  properties["matches"] = described(number, "lines that match grep");
  properties["stdoutFound"] = described(text, "lines of stdout that grep shows, with their numbers");
  properties["stderrFound"] = described(text, "the same of stderr");
  properties["cursor"] = {{"type", "string"}, {"description", "pass as since to read on from here"}};
  properties["screen"] = object_schema({{"text", text},
                                        {"columns", number},
                                        {"rows", number},
                                        {"cursorRow", number},
                                        {"cursorColumn", number},
                                        {"cursorVisible", flag},
                                        {"fullScreen", flag}},
                                       {});
}

}  // namespace dockbridge::tools
