#include "sandbox/files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sandbox/answer_fields.hpp"
#include "sandbox/answers.hpp"
#include "sandbox/sandbox.hpp"
#include "util/json_text.hpp"
#include "util/random.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

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
constexpr int k_list_depth = 8;
constexpr std::uint64_t k_max_image_side = std::uint64_t{1} << 24U;
constexpr std::size_t k_max_shown_path = 500;
constexpr std::size_t k_max_shown_revision = 40;
constexpr std::size_t k_max_type_bytes = 200;

/// What `read` makes of an answer, or a violation if the answer is not what was agreed on.
template <typename Frame, typename Read>
auto understood(Frame& frame, Read read) -> Result<decltype(read(frame))> {
  try {
    return read(frame);
  } catch (const json::exception&) {
    return fail(violation());
  } catch (const BadAnswer&) {
    return fail(violation());
  }
}

/// Whether a text is a plausible name of an encoding, to be shown to people.
bool is_encoding(std::string_view name) {
  return name.size() <= 20 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

ReadFile read_file_from(wire::Frame& frame) {
  const json& head = frame.head;
  ReadFile file;
  file.path = text_in(head, "path");
  file.size = number_in(head, "size", k_max_file_bytes);
  file.revision = name_in(head, "revision", wire::is_revision);
  file.modified_at_ms = signed_in(head, "modifiedAtMs");
  if (head.contains("previousRevision")) {
    file.previous_revision = name_in(head, "previousRevision", wire::is_revision);
  }
  const std::string kind = word_in(head, "kind", {"text", "image", "binary"});
  if (kind == "image") {
    file.kind = FileKind::image;
    file.type = word_in(head, "type", {wire::k_image_types.begin(), wire::k_image_types.end()});
    if (head.contains("width")) {
      file.width = number_in(head, "width", k_max_image_side);
      file.height = number_in(head, "height", k_max_image_side);
    }
    return file;
  }
  if (kind == "binary") {
    file.kind = FileKind::binary;
    file.type = printable_line(text_in(head, "type"), k_max_type_bytes);
    return file;
  }
  file.text = std::move(frame.body);
  file.lines = number_in(head, "lines", file.text.size());
  file.first_line = signed_in(head, "firstLine");
  file.more = flag_in(head, "more");
  file.cut_lines = number_in(head, "cutLines");
  file.encoding = name_in(head, "encoding", is_encoding);
  file.line_ends = word_in(head, "lineEnds", {"none", "lf", "crlf", "mixed"});
  file.final_newline = flag_in(head, "finalNewline");
  if (head.contains("totalLines")) {
    file.total_lines = number_in(head, "totalLines");
  }
  return file;
}

ScaledImage scaled_image_from(wire::Frame& frame) {
  const json& head = frame.head;
  return {word_in(head, "type", {"image/png", "image/jpeg"}), name_in(head, "revision", wire::is_revision),
          number_in(head, "width", k_max_image_side), number_in(head, "height", k_max_image_side),
          std::move(frame.body)};
}

ChangedFile change_from(const json& head) {
  ChangedFile file;
  file.path = text_in(head, "path");
  file.revision = name_in(head, "revision", wire::is_revision);
  file.before = name_in(head, "before", wire::is_revision);
  file.change = name_in(head, "change", wire::is_change_id);
  file.size = number_in(head, "size", k_max_file_bytes);
  file.encoding = name_in(head, "encoding", is_encoding);
  for (const json& count : head.at("replacements")) {
    file.replacements.push_back(number_of(count));
  }
  file.added = number_in(head, "added");
  file.removed = number_in(head, "removed");
  file.was_stale = flag_in(head, "stale");
  file.notes = notes_in(head, "notes");
  return file;
}

ChangedFile changed_file_from(const wire::Frame& frame) {
  ChangedFile file = change_from(frame.head);
  const std::size_t diff_bytes = number_in(frame.head, "diffBytes", frame.body.size());
  file.diff = frame.body.substr(0, diff_bytes);
  file.stale_changes = frame.body.substr(diff_bytes);
  return file;
}

std::vector<ChangedFile> changed_files_from(const wire::Frame& frame, std::size_t max) {
  const std::size_t list_bytes = number_in(frame.head, "listBytes", frame.body.size());
  const auto list = wire::parse_bounded(std::string_view(frame.body).substr(0, list_bytes), k_list_depth);
  if (!list || !list->at("changes").is_array() || list->at("changes").size() > max) {
    throw BadAnswer("list");
  }
  std::vector<ChangedFile> files;
  std::size_t at = list_bytes;
  for (const json& entry : list->at("changes")) {
    files.push_back(change_from(entry));
    const std::size_t diff_bytes = number_in(entry, "diffBytes", frame.body.size() - at);
    files.back().diff = frame.body.substr(at, diff_bytes);
    at += diff_bytes;
  }
  return files;
}

SearchTotals totals_from(const json& head) {
  SearchTotals totals;
  totals.total = number_in(head, "total");
  totals.more = flag_in(head, "more");
  totals.hidden = number_in(head, "hidden");
  totals.ignored = number_in(head, "ignored");
  totals.unreadable = number_in(head, "unreadable");
  totals.unreadable_paths = notes_in(head, "unreadablePaths");
  return totals;
}

Result<FileListing> listing_from(const wire::Frame& frame, std::size_t max) {
  auto entries = wire::decode_entries(frame.body);
  if (!entries || entries->size() > max) {
    return fail(violation());
  }
  return understood(frame, [&](const wire::Frame&) {
    return FileListing{text_in(frame.head, "path"), std::move(*entries), number_in(frame.head, "shown"),
                       totals_from(frame.head)};
  });
}

FoundInFile found_in_file_from(const json& entry) {
  FoundInFile file{text_in(entry, "path"), number_in(entry, "matches"), {}};
  for (const json& line : entry.at("lines")) {
    const std::uint64_t column = number_of(line.at(1));
    file.lines.push_back({number_of(line.at(0)), column > 0, column, line.at(2).get<std::string>(),
                          number_of(line.at(3)), number_of(line.at(4))});
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
    result.path = text_in(head, "path");
    result.shown = number_in(head, "shown");
    result.files_with_matches = number_in(head, "filesWithMatches");
    result.files_searched = number_in(head, "filesSearched");
    result.binary_skipped = number_in(head, "binary");
    result.notes = notes_in(head, "notes");
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
                               const CallLimit& limit) {
  if (!m_root.empty()) {
    head["root"] = m_root;
  }
  auto answer = m_sandbox.ask(head, body, patience, limit);
  if (!answer && answer.error().code == ErrorCode::connection_lost && repeat == Repeat::once) {
    answer = m_sandbox.ask(std::move(head), body, patience, limit);
  }
  return answer;
}

template <typename Value>
Result<Value> Files::believed(Result<Value> value) {
  return value ? std::move(value) : m_sandbox.drop_session(value.error());
}

Result<ReadFile> Files::read(const ReadRequest& request, const CallLimit& limit) {
  auto answer = ask({{"op", "file.read"},
                     {"path", request.path},
                     {"owner", request.owner},
                     {"offset", request.offset},
                     {"limit", request.limit},
                     {"column", request.column},
                     {"maxLine", request.max_line_characters},
                     {"maxBytes", request.max_bytes}},
                    {}, k_patience, Repeat::once, limit);
  auto file = answer ? believed(understood(*answer, read_file_from)) : fail(answer.error());
  if (file) {
    m_revisions.remember(request.owner, request.path, file->revision);
  }
  return file;
}

Result<bool> Files::await_change(const std::string& path, std::int64_t modified_at_ms, milliseconds timeout,
                                 const CallLimit& limit) {
  const auto answer =
      ask({{"op", "file.watch"}, {"path", path}, {"modifiedAtMs", modified_at_ms}, {"timeoutMs", timeout.count()}}, {},
          timeout + k_patience, Repeat::once, limit);
  const auto read = [](const wire::Frame& frame) { return flag_in(frame.head, "changed"); };
  return answer ? believed(understood(*answer, read)) : fail(answer.error());
}

json Files::change_head(const char* operation, const ChangeRequest& request) const {
  json head = {{"op", operation}, {"path", request.path}, {"owner", request.owner}};
  if (request.expected_revision) {
    head["expected"] = *request.expected_revision;
  }
  if (request.match_is_enough) {
    head["matchIsEnough"] = true;
  }
  return head;
}

Result<ChangedFile> Files::change(const ChangeRequest& request, json head, std::string_view body,
                                  const CallLimit& limit) {
  const auto answer = ask(std::move(head), body, k_patience, Repeat::never, limit.without_stop());
  auto changed = answer ? believed(understood(*answer, changed_file_from)) : fail(answer.error());
  if (changed) {
    m_revisions.remember(request.owner, request.path, changed->revision);
  } else if (changed.error().outcome_unknown || changed.error().code == ErrorCode::worker_gone) {
    Error error = changed.error();
    error.outcome_unknown = true;
    return fail(error.with_effect(fmt::format("the change to {} may have been made, or may still be made",
                                              printable_line(request.path, k_max_shown_path)),
                                  "Read the file to check" + revision_hint(request)));
  }
  return changed;
}

std::string Files::revision_hint(const ChangeRequest& request) {
  if (request.expected_revision) {
    return "; its revision before the change was " + printable_line(*request.expected_revision, k_max_shown_revision);
  }
  const std::string seen = m_revisions.find(request.owner, request.path);
  return seen.empty() ? "" : "; the last revision you saw was " + seen.substr(0, wire::k_short_digits);
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

Result<ChangedFile> Files::write(const ChangeRequest& request, const NewContent& content, const CallLimit& limit) {
  if (content.bytes.size() <= k_most_at_once) {
    return change(request, write_head(request, content), content.bytes, limit);
  }
  Upload pieces = upload(request.path);
  for (std::size_t at = 0; at < content.bytes.size(); at += k_upload_piece_bytes) {
    if (auto sent = pieces.append(content.bytes.substr(at, k_upload_piece_bytes), limit); !sent) {
      return fail(sent.error());
    }
  }
  return pieces.finish(request, content, limit);
}

Result<ChangedFile> Files::edit(const ChangeRequest& request, const std::vector<TextEdit>& edits,
                                const CallLimit& limit) {
  json head = change_head("file.edit", request);
  head["edits"] = json::array();
  std::string body;
  for (const TextEdit& edit : edits) {
    head["edits"].push_back({edit.old_text.size(), edit.new_text.size(), edit.replace_all});
    body += edit.old_text + edit.new_text;
  }
  return change(request, std::move(head), body, limit);
}

Result<std::vector<ChangedFile>> Files::edit_all(const EditSet& set, const CallLimit& limit) {
  json list = {{"files", json::array()}};
  std::string texts;
  for (const FileEdits& file : set.files) {
    json entry = {{"path", file.path}, {"edits", json::array()}};
    if (file.expected_revision) {
      entry["expected"] = *file.expected_revision;
    }
    for (const TextEdit& edit : file.edits) {
      entry["edits"].push_back({edit.old_text.size(), edit.new_text.size(), edit.replace_all});
      texts += edit.old_text + edit.new_text;
    }
    list["files"].push_back(std::move(entry));
  }
  std::string body = json_text(list);
  const json head = {{"op", "file.edit_set"},    {"owner", set.owner},
                     {"listBytes", body.size()}, {"matchIsEnough", set.match_is_enough},
                     {"preview", set.preview},   {"replacement", set.is_replacement}};
  body += texts;
  const auto answer = ask(head, body, k_patience, set.preview ? Repeat::once : Repeat::never,
                          set.preview ? limit : limit.without_stop());
  const auto read = [&](const wire::Frame& frame) { return changed_files_from(frame, set.files.size()); };
  auto changed = answer ? believed(understood(*answer, read)) : fail(answer.error());
  if (!changed && !set.preview && (changed.error().outcome_unknown || changed.error().code == ErrorCode::worker_gone)) {
    Error error = changed.error();
    error.outcome_unknown = true;
    return fail(error.with_effect("all files may have been changed, or none", "Read all of the files to check"));
  }
  return changed;
}

Result<ScaledImage> Files::scaled_image(const std::string& path, const std::string& owner, std::uint32_t max_side,
                                        const CallLimit& limit) {
  auto answer = ask({{"op", "file.image"}, {"path", path}, {"owner", owner}, {"maxSide", max_side}}, {}, k_patience,
                    Repeat::once, limit);
  return answer ? believed(understood(*answer, scaled_image_from)) : fail(answer.error());
}

Result<ChangedFile> Files::undo(const ChangeRequest& request, const std::string& change_id, const CallLimit& limit) {
  json head = change_head("file.undo", request);
  if (!change_id.empty()) {
    head["change"] = change_id;
  }
  return change(request, std::move(head), {}, limit);
}

Result<FileListing> Files::list(const ListRequest& request, milliseconds patience, const CallLimit& limit) {
  const auto answer = ask({{"op", "file.list"},
                           {"path", request.path},
                           {"ignore", request.ignore},
                           {"depth", request.depth},
                           {"honourIgnore", request.honour_ignore_files},
                           {"details", request.details},
                           {"offset", request.offset},
                           {"max", request.max}},
                          {}, patience, Repeat::once, limit);
  return answer ? believed(listing_from(*answer, request.max)) : fail(answer.error());
}

Result<FileListing> Files::glob(const GlobRequest& request, milliseconds patience, const CallLimit& limit) {
  const auto answer = ask({{"op", "file.glob"},
                           {"path", request.path},
                           {"pattern", request.pattern},
                           {"newestFirst", request.newest_first},
                           {"honourIgnore", request.honour_ignore_files},
                           {"hidden", request.hidden},
                           {"offset", request.offset},
                           {"max", request.max}},
                          {}, patience, Repeat::once, limit);
  return answer ? believed(listing_from(*answer, request.max)) : fail(answer.error());
}

Result<FileGrepResult> Files::grep(const FileGrepRequest& request, milliseconds patience, const CallLimit& limit) {
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
                          {}, patience, Repeat::once, limit);
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
    // If this request is lost, the agent drops the content when the connection ends.
    m_files->m_sandbox.post({{"op", "file.abandon"}, {"staging", m_token}});
  }
}

Result<void> Files::Upload::append(std::string_view bytes, const CallLimit& limit) {
  const bool first = std::exchange(m_first, false);
  const auto answer = m_files->ask({{"op", "file.stage"}, {"staging", m_token}, {"path", m_path}, {"first", first}},
                                   bytes, k_patience, Repeat::never, limit);
  if (answer) {
    return {};
  }
  Error error = answer.error();
  if (error.outcome_unknown) {  // of this piece; the file itself changes only at the end
    error.message += "; the file was not changed";
    error.outcome_unknown = false;
  }
  return fail(std::move(error));
}

Result<ChangedFile> Files::Upload::finish(const ChangeRequest& request, const NewContent& content,
                                          const CallLimit& limit) {
  json head = m_files->write_head(request, content);
  head["staging"] = m_token;
  auto changed = m_files->change(request, std::move(head), {}, limit);
  if (changed) {
    m_token.clear();
  }
  return changed;
}

}  // namespace dockbridge::sandbox
