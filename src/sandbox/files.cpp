#include "sandbox/files.hpp"

#include <algorithm>

#include "sandbox/answers.hpp"
#include "sandbox/sandbox.hpp"
#include "util/random.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

/// Reading from a disk that sleeps, and what a command does to the machine meanwhile, included.
constexpr milliseconds k_patience{60'000};
constexpr std::size_t k_token_length = 16;
constexpr std::size_t k_upload_piece_bytes = 1024 * 1024;
/// A content up to this size travels in one message.
constexpr std::size_t k_most_at_once = 16ULL * 1024 * 1024;
constexpr int k_grep_depth = 8;

/// What `read` makes of an answer, or a violation if the answer is not what was agreed on.
template <typename Frame, typename Read>
auto understood(Frame& frame, Read read) -> Result<decltype(read(frame))> {
  try {
    return read(frame);
  } catch (const json::exception&) {
    return fail(violation());
  }
}

ReadFile read_file_from(wire::Frame& frame) {
  const json& head = frame.head;
  ReadFile file;
  file.path = head.at("path").get<std::string>();
  file.size = head.at("size").get<std::uint64_t>();
  file.revision = head.at("revision").get<std::string>();
  file.modified_at_ms = head.at("modifiedAtMs").get<std::int64_t>();
  if (const auto kind = head.at("kind").get<std::string>(); kind != "text") {
    file.kind = kind == "image" ? FileKind::image : FileKind::binary;
    file.type = head.at("type").get<std::string>();
    return file;
  }
  file.text = std::move(frame.body);
  file.lines = head.at("lines").get<std::size_t>();
  file.first_line = head.at("firstLine").get<std::int64_t>();
  file.more = head.at("more").get<bool>();
  file.cut_lines = head.at("cutLines").get<std::uint64_t>();
  file.encoding = head.at("encoding").get<std::string>();
  file.line_ends = head.at("lineEnds").get<std::string>();
  file.final_newline = head.at("finalNewline").get<bool>();
  if (head.contains("totalLines")) {
    file.total_lines = head["totalLines"].get<std::uint64_t>();
  }
  return file;
}

ChangedFile changed_file_from(const wire::Frame& frame) {
  const json& head = frame.head;
  ChangedFile file;
  file.path = head.at("path").get<std::string>();
  file.revision = head.at("revision").get<std::string>();
  file.before = head.at("before").get<std::string>();
  file.change = head.at("change").get<std::string>();
  file.size = head.at("size").get<std::uint64_t>();
  file.encoding = head.at("encoding").get<std::string>();
  file.replacements = head.at("replacements").get<std::vector<std::uint64_t>>();
  file.added = head.at("added").get<std::uint64_t>();
  file.removed = head.at("removed").get<std::uint64_t>();
  file.was_stale = head.at("stale").get<bool>();
  file.notes = head.at("notes").get<std::vector<std::string>>();
  const std::size_t diff_bytes = std::min(head.at("diffBytes").get<std::size_t>(), frame.body.size());
  file.diff = frame.body.substr(0, diff_bytes);
  file.stale_changes = frame.body.substr(diff_bytes);
  return file;
}

SearchTotals totals_from(const json& head) {
  SearchTotals totals;
  totals.total = head.at("total").get<std::uint64_t>();
  totals.more = head.at("more").get<bool>();
  totals.hidden = head.at("hidden").get<std::uint64_t>();
  totals.ignored = head.at("ignored").get<std::uint64_t>();
  totals.unreadable = head.at("unreadable").get<std::uint64_t>();
  totals.unreadable_paths = head.at("unreadablePaths").get<std::vector<std::string>>();
  return totals;
}

Result<FileListing> listing_from(const wire::Frame& frame) {
  auto entries = wire::decode_entries(frame.body);
  if (!entries) {
    return fail(violation());
  }
  return understood(frame, [&](const wire::Frame&) {
    return FileListing{frame.head.at("path").get<std::string>(), std::move(*entries),
                       frame.head.at("shown").get<std::uint64_t>(), totals_from(frame.head)};
  });
}

FoundInFile found_in_file_from(const json& entry) {
  FoundInFile file{entry.at("path").get<std::string>(), entry.at("matches").get<std::uint64_t>(), {}};
  for (const json& line : entry.at("lines")) {
    file.lines.push_back({line.at(0).get<std::uint64_t>(), line.at(1).get<std::uint64_t>() > 0,
                          line.at(1).get<std::uint64_t>(), line.at(2).get<std::string>(),
                          line.at(3).get<std::uint64_t>(), line.at(4).get<std::uint64_t>()});
  }
  return file;
}

Result<FileGrepResult> grep_result_from(const wire::Frame& frame) {
  const auto body = wire::parse_bounded(frame.body, k_grep_depth);
  if (!body) {
    return fail(violation());
  }
  return understood(frame, [&](const wire::Frame&) {
    const json& head = frame.head;
    FileGrepResult result;
    result.path = head.at("path").get<std::string>();
    result.shown = head.at("shown").get<std::uint64_t>();
    result.files_with_matches = head.at("filesWithMatches").get<std::uint64_t>();
    result.files_searched = head.at("filesSearched").get<std::uint64_t>();
    result.binary_skipped = head.at("binary").get<std::uint64_t>();
    result.notes = head.at("notes").get<std::vector<std::string>>();
    result.totals = totals_from(head);
    for (const json& file : body->at("files")) {
      result.files.push_back(found_in_file_from(file));
    }
    return result;
  });
}

}  // namespace

const std::string& Files::base() const {
  const std::string& workdir = m_sandbox.workdir();
  const bool is_beneath = m_root.empty() || workdir == m_root || workdir.starts_with(m_root + "/");
  return is_beneath ? workdir : m_root;
}

Result<wire::Frame> Files::ask(json head, std::string_view body, milliseconds patience, Repeat repeat,
                               const std::stop_token& stop) {
  if (!m_root.empty()) {
    head["root"] = m_root;
  }
  auto answer = m_sandbox.ask(head, body, patience, stop);
  if (!answer && answer.error().code == "connection_lost" && repeat == Repeat::once) {
    answer = m_sandbox.ask(std::move(head), body, patience, stop);
  }
  return answer;
}

template <typename Value>
Result<Value> Files::believed(Result<Value> value) {
  return value ? std::move(value) : m_sandbox.drop_session(value.error());
}

Result<ReadFile> Files::read(const ReadRequest& request, const std::stop_token& stop) {
  auto answer = ask({{"op", "file.read"},
                     {"path", request.path},
                     {"owner", request.owner},
                     {"offset", request.offset},
                     {"limit", request.limit},
                     {"maxLine", request.max_line_characters},
                     {"maxBytes", request.max_bytes}},
                    {}, k_patience, Repeat::once, stop);
  return answer ? believed(understood(*answer, read_file_from)) : fail(answer.error());
}

Result<FileBytes> Files::bytes(const std::string& path, std::uint64_t offset, std::size_t max,
                               const std::stop_token& stop) {
  const auto answer =
      ask({{"op", "file.bytes"}, {"path", path}, {"offset", offset}, {"max", max}}, {}, k_patience, Repeat::once, stop);
  const auto read = [](const wire::Frame& frame) {
    return FileBytes{frame.head.at("size").get<std::uint64_t>(), frame.body};
  };
  return answer ? believed(understood(*answer, read)) : fail(answer.error());
}

Result<bool> Files::await_change(const std::string& path, std::int64_t modified_at_ms, milliseconds timeout,
                                 const std::stop_token& stop) {
  const auto answer =
      ask({{"op", "file.watch"}, {"path", path}, {"modifiedAtMs", modified_at_ms}, {"timeoutMs", timeout.count()}}, {},
          timeout + k_patience, Repeat::once, stop);
  const auto read = [](const wire::Frame& frame) { return frame.head.at("changed").get<bool>(); };
  return answer ? believed(understood(*answer, read)) : fail(answer.error());
}

json Files::change_head(const char* operation, const ChangeRequest& request) const {
  json head = {{"op", operation}, {"path", request.path}, {"owner", request.owner}};
  if (request.expected_revision) {
    head["expected"] = *request.expected_revision;
  }
  return head;
}

Result<ChangedFile> Files::change(json head, std::string_view body) {
  // Not interrupted: it is about to be done, and whoever asked for it should know.
  const auto answer = ask(std::move(head), body, k_patience, Repeat::never, {});
  if (!answer && answer.error().code == "connection_lost") {
    return fail("connection_lost", answer.error().message + "; the change may have been made",
                "Read the file to see whether it was");
  }
  return answer ? believed(understood(*answer, changed_file_from)) : fail(answer.error());
}

json Files::write_head(const ChangeRequest& request, const NewContent& content) const {
  json head = change_head("file.write", request);
  head["text"] = content.is_text;
  if (!content.encoding.empty()) {
    head["encoding"] = content.encoding;
  }
  if (content.mode) {
    head["mode"] = *content.mode;
  }
  return head;
}

Result<ChangedFile> Files::write(const ChangeRequest& request, const NewContent& content) {
  if (content.bytes.size() <= k_most_at_once) {
    return change(write_head(request, content), content.bytes);
  }
  Upload pieces = upload(request.path);
  for (std::size_t at = 0; at < content.bytes.size(); at += k_upload_piece_bytes) {
    if (auto sent = pieces.append(content.bytes.substr(at, k_upload_piece_bytes)); !sent) {
      return fail(sent.error());
    }
  }
  return pieces.finish(request, content);
}

Result<ChangedFile> Files::edit(const ChangeRequest& request, const std::vector<TextEdit>& edits) {
  json head = change_head("file.edit", request);
  head["edits"] = json::array();
  std::string body;
  for (const TextEdit& edit : edits) {
    head["edits"].push_back({edit.old_text.size(), edit.new_text.size(), edit.replace_all});
    body += edit.old_text + edit.new_text;
  }
  return change(std::move(head), body);
}

Result<ChangedFile> Files::undo(const ChangeRequest& request, const std::string& change_id) {
  json head = change_head("file.undo", request);
  if (!change_id.empty()) {
    head["change"] = change_id;
  }
  return change(std::move(head), {});
}

Result<FileListing> Files::list(const ListRequest& request, milliseconds patience, const std::stop_token& stop) {
  const auto answer = ask({{"op", "file.list"},
                           {"path", request.path},
                           {"ignore", request.ignore},
                           {"depth", request.depth},
                           {"honourIgnore", request.honour_ignore_files},
                           {"details", request.details},
                           {"offset", request.offset},
                           {"max", request.max}},
                          {}, patience, Repeat::once, stop);
  return answer ? believed(listing_from(*answer)) : fail(answer.error());
}

Result<FileListing> Files::glob(const GlobRequest& request, milliseconds patience, const std::stop_token& stop) {
  const auto answer = ask({{"op", "file.glob"},
                           {"path", request.path},
                           {"pattern", request.pattern},
                           {"newestFirst", request.newest_first},
                           {"honourIgnore", request.honour_ignore_files},
                           {"hidden", request.hidden},
                           {"offset", request.offset},
                           {"max", request.max}},
                          {}, patience, Repeat::once, stop);
  return answer ? believed(listing_from(*answer)) : fail(answer.error());
}

Result<FileGrepResult> Files::grep(const FileGrepRequest& request, milliseconds patience, const std::stop_token& stop) {
  const auto answer = ask({{"op", "file.grep"},
                           {"path", request.path},
                           {"pattern", request.pattern},
                           {"literal", request.literal},
                           {"ignoreCase", request.ignore_case},
                           {"wholeWord", request.whole_word},
                           {"multiLine", request.multi_line},
                           {"include", request.include},
                           {"exclude", request.exclude},
                           {"honourIgnore", request.honour_ignore_files},
                           {"hidden", request.hidden},
                           {"context", request.context},
                           {"output", request.output},
                           {"offset", request.offset},
                           {"max", request.max}},
                          {}, patience, Repeat::once, stop);
  return answer ? believed(grep_result_from(*answer)) : fail(answer.error());
}

Files::Upload Files::upload(const std::string& path) {
  return {*this, path, random_token(k_token_length)};
}

Files::Upload::Upload(Files& files, std::string path, std::string token)
    : m_files(&files), m_path(std::move(path)), m_token(std::move(token)) {}

Files::Upload::Upload(Upload&& other) noexcept
    : m_files(other.m_files),
      m_path(std::move(other.m_path)),
      m_token(std::exchange(other.m_token, "")),
      m_first(other.m_first) {}

Files::Upload::~Upload() {
  if (!m_token.empty() && !m_first) {
    // If it does not get there, what was sent goes with its connection.
    (void)m_files->ask({{"op", "file.abandon"}, {"staging", m_token}}, {}, k_patience, Repeat::never, {});
  }
}

Result<void> Files::Upload::append(std::string_view bytes) {
  const bool first = std::exchange(m_first, false);
  const auto answer = m_files->ask({{"op", "file.stage"}, {"staging", m_token}, {"path", m_path}, {"first", first}},
                                   bytes, k_patience, Repeat::never, {});
  if (!answer) {
    m_token.clear();  // it is over on the other side too
    return fail(answer.error());
  }
  return {};
}

Result<ChangedFile> Files::Upload::finish(const ChangeRequest& request, const NewContent& content) {
  json head = m_files->write_head(request, content);
  head["staging"] = std::exchange(m_token, "");
  return m_files->change(std::move(head), {});
}

}  // namespace dockbridge::sandbox
