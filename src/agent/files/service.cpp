#include "agent/files/service.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "agent/files/binary_kind.hpp"
#include "agent/files/download.hpp"
#include "agent/files/file_changer.hpp"
#include "agent/files/image_header.hpp"
#include "agent/files/image_scale.hpp"
#include "agent/files/revision.hpp"
#include "agent/files/searching.hpp"
#include "agent/files/text_page.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"
#include "util/memory.hpp"
#include "util/text.hpp"
#include "wire/error_message.hpp"
#include "wire/file_names.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

constexpr std::size_t k_most_page_bytes = wire::k_max_body_to_host / 2;
constexpr std::size_t k_most_edits = 1000;
constexpr std::size_t k_image_reserve = 4096;
/// A JPEG states its size behind what cameras add: previews, profiles.
constexpr std::size_t k_image_header_bytes = 1024 * 1024;
constexpr rlim_t k_wanted_descriptors = 4096;
constexpr int k_list_depth = 8;
constexpr std::size_t k_max_set_path_bytes = 256 * 1024;
constexpr std::size_t k_max_set_diff_bytes = 256 * 1024;
constexpr std::size_t k_max_set_notes = 3;
constexpr std::size_t k_max_set_note_bytes = 200;
constexpr int k_rest_after_ms = 1000;
/// A request that took more memory than this gives it back.
constexpr std::size_t k_kept_bytes = 1024 * 1024;

struct Answer {
  json head = json::object();
  std::string body{};
};

std::string text_field(const json& head, const char* name) {
  return head.value(name, std::string());
}

Result<FileSpace> space_of(const json& head) {
  return FileSpace::open(text_field(head, "root"));
}

ChangeRequest change_request(const json& head) {
  ChangeRequest request{head.at("path").get<std::string>(), head.at("owner").get<std::string>(), std::nullopt};
  if (head.contains("expected")) {
    request.expected = head["expected"].get<std::string>();
  }
  request.match_is_enough = head.value("matchIsEnough", false);
  return request;
}

/// Takes the texts of edits from a body, one after the other.
class EditTexts {
 public:
  explicit EditTexts(std::string_view body) : m_rest(body) {}

  /// `sizes` is an array of `[old bytes, new bytes, all]`.
  Result<std::vector<Edit>> take(const json& sizes) {
    std::vector<Edit> edits;
    for (const json& edit : sizes) {
      const auto old_bytes = edit.at(0).get<std::size_t>();
      const auto new_bytes = edit.at(1).get<std::size_t>();
      if (old_bytes > m_rest.size() || new_bytes > m_rest.size() - old_bytes || ++m_count > k_most_edits) {
        return fail(ErrorCode::bad_request, "The edits exceed the body, or are too many");
      }
      edits.push_back({std::string(m_rest.substr(0, old_bytes)), std::string(m_rest.substr(old_bytes, new_bytes)),
                       edit.at(2).get<bool>()});
      m_rest.remove_prefix(old_bytes + new_bytes);
    }
    return edits;
  }

 private:
  std::string_view m_rest;
  std::size_t m_count = 0;
};

std::optional<mode_t> mode_of(const json& head) {
  return head.contains("mode") ? std::optional(head["mode"].get<mode_t>() & 07777U) : std::nullopt;
}

json describe(const ResolvedFile& file) {
  return {{"path", file.path},
          {"mode", file.info.st_mode & 07777U},
          {"modifiedAtMs", file_milliseconds(file.info.st_mtim)}};
}

Result<ResolvedFile> find_regular(const json& head) {
  const auto space = space_of(head);
  auto file = space ? space->find(head.at("path").get<std::string>()) : fail(space.error());
  if (!file) {
    return fail(file.error());
  }
  const auto regular = expect_regular(*file);
  return regular ? std::move(file) : fail(regular.error());
}

/// Width and height of an image as it is to be shown.
json shown_size(const ImageHeader& header) {
  return {{"width", header.is_turned() ? header.height : header.width},
          {"height", header.is_turned() ? header.width : header.height}};
}

std::optional<ImageHeader> image_header(const ResolvedFile& file, const FileContent& content) {
  const auto header = image_header_of(content.whole ? *content.whole : content.start);
  const auto fd = header || content.whole ? fail(ErrorCode::bad_image, "") : file.open_for_reading();
  const auto start = fd ? read_at(fd->get(), 0, k_image_header_bytes, file.path) : fail(fd.error());
  return start ? image_header_of(*start) : header;
}

/// Like `describe`, with size, revision and kind.
Answer describe_content(const ResolvedFile& file, const FileContent& content) {
  Answer answer{describe(file)};
  answer.head["size"] = content.size;
  answer.head["revision"] = content.revision;
  answer.head["kind"] = "text";
  if (!content.page) {
    const auto image = image_type_of(content.start);
    answer.head["kind"] = image ? "image" : "binary";
    answer.head["type"] = image ? *image : describe_binary(content.start);
    if (const auto header = image ? image_header(file, content) : std::nullopt) {
      answer.head.update(shown_size(*header));
    }
  }
  return answer;
}

/// The requests that change files, and those that look at them.
class Service {
 public:
  explicit Service(FileChanger changer) : m_changer(std::move(changer)) {}

  /// To be called when an answer is out.
  void settle() { m_changer.settle(); }
  /// To be called when nothing has come for a while.
  void rest() { m_changer.rest(); }

  Result<Answer> handle(const wire::Frame& frame) {
    static const std::map<std::string_view, Result<Answer> (Service::*)(const wire::Frame&)> k_operations = {
        {"file.read", &Service::read},         {"file.bytes", &Service::bytes}, {"file.write", &Service::write},
        {"file.edit", &Service::edit},         {"file.undo", &Service::undo},   {"file.stage", &Service::stage},
        {"file.edit_set", &Service::edit_set}, {"file.image", &Service::image}, {"file.list", &Service::search},
        {"file.abandon", &Service::abandon},   {"file.glob", &Service::search}, {"file.grep", &Service::search},
        {"file.open", &Service::open},         {"file.next", &Service::next}};
    const auto& name = frame.head.at("op").get_ref<const std::string&>();
    const auto operation = k_operations.find(name);
    if (operation == k_operations.end()) {
      return fail(ErrorCode::unknown_operation, "Unknown operation '" + name + "'");
    }
    return (this->*operation->second)(frame);
  }

 private:
  Result<Answer> read(const wire::Frame& frame) {
    const json& head = frame.head;
    const auto file = find_regular(head);
    if (!file) {
      return fail(file.error());
    }
    PageRequest request;
    request.offset = head.at("offset").get<std::int64_t>();
    request.limit = head.at("limit").get<std::size_t>();
    request.column = head.at("column").get<std::uint64_t>();
    request.most_line_characters = head.at("maxLine").get<std::size_t>();
    request.most_bytes = std::min(head.at("maxBytes").get<std::size_t>(), k_most_page_bytes);
    auto content = read_content(*file, request);
    if (!content) {
      return fail(content.error());
    }
    const std::string owner = head.at("owner").get<std::string>();
    const auto before = request.offset != 0 ? m_changer.last_seen(owner, file->path) : std::nullopt;
    Answer answer = describe_content(*file, *content);
    if (before && !content->revision.empty() && *before != content->revision) {
      answer.head["previousRevision"] = *before;
    }
    m_changer.note_seen(owner, file->path, content->revision, std::move(content->whole));
    if (!content->page) {
      return answer;
    }
    TextPage& page = *content->page;
    answer.head["firstLine"] = page.first_line;
    answer.head["lines"] = page.lines;
    answer.head["more"] = page.more;
    answer.head["cutLines"] = page.cut_lines;
    answer.head["encoding"] = name_of(page.encoding);
    answer.head["lineEnds"] = name_of(page.ends);
    answer.head["finalNewline"] = page.final_newline;
    if (page.total_lines) {
      answer.head["totalLines"] = *page.total_lines;
    }
    answer.body = std::move(page.text);
    return answer;
  }

  Result<Answer> bytes(const wire::Frame& frame) {
    const auto file = find_regular(frame.head);
    const auto fd = file ? file->open_for_reading() : fail(file.error());
    if (!fd) {
      return fail(fd.error());
    }
    Answer answer{describe(*file)};
    answer.body.resize(std::min(frame.head.at("max").get<std::size_t>(), wire::k_max_body_to_host));
    const auto offset = static_cast<off_t>(frame.head.at("offset").get<std::uint64_t>());
    const ssize_t got = ::pread(fd->get(), answer.body.data(), answer.body.size(), offset);
    if (got < 0 && errno != EAGAIN) {
      return fail(file_error(file->path, errno));
    }
    answer.body.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    answer.head["size"] = file->info.st_size;
    return answer;
  }

  /// An image, scaled down to `maxSide`.
  Result<Answer> image(const wire::Frame& frame) {
    const auto file = find_regular(frame.head);
    const auto fd = file ? file->open_for_reading() : fail(file.error());
    const auto bytes = fd ? read_at(fd->get(), 0, k_max_scaled_file_bytes + 1, file->path) : fail(fd.error());
    if (!bytes) {
      return fail(bytes.error());
    }
    if (bytes->size() > k_max_scaled_file_bytes) {
      return fail(ErrorCode::too_large, "Image exceeds " + human_bytes(k_max_scaled_file_bytes),
                  "Make a smaller copy with a command");
    }
    const auto header = image_header_of(*bytes);
    auto scaled = header ? scale_image(*bytes, *header, frame.head.at("maxSide").get<std::uint32_t>(),
                                       wire::k_max_body_to_host - k_image_reserve)
                         : fail(ErrorCode::bad_image, "Image has no readable header", "Pass scale: false");
    if (!scaled) {
      return fail(scaled.error());
    }
    Answer answer{describe(*file), std::move(scaled->bytes)};
    answer.head["size"] = bytes->size();
    answer.head["revision"] = revision_of(*bytes);
    answer.head["type"] = scaled->type;
    answer.head["width"] = scaled->width;
    answer.head["height"] = scaled->height;
    m_changer.note_seen(frame.head.at("owner").get<std::string>(), file->path, answer.head["revision"], std::nullopt);
    return answer;
  }

  /// Opens a file that `next` returns piece by piece. With an owner, the reply also describes the file, and the file
  /// counts as read by that owner.
  Result<Answer> open(const wire::Frame& frame) {
    m_download.reset();
    const auto file = find_regular(frame.head);
    auto download = file ? Download::open(*file) : fail(file.error());
    if (!download) {
      return fail(download.error());
    }
    Answer answer{describe(*file)};
    if (frame.head.contains("owner")) {
      auto content = read_content(*file, {.limit = 0});
      if (!content) {
        return fail(content.error());
      }
      answer = describe_content(*file, *content);
      m_changer.note_seen(frame.head["owner"].get<std::string>(), file->path, content->revision,
                          std::move(content->whole));
    }
    answer.head["size"] = (*download)->size();
    answer.head["staging"] = true;
    m_download = std::move(*download);
    return answer;
  }

  Result<Answer> next(const wire::Frame& frame) {
    if (!m_download) {
      return fail(ErrorCode::nothing_staged, "No file is open for this copy", "Start the copy again");
    }
    auto piece = m_download->next(std::min(frame.head.at("max").get<std::size_t>(), wire::k_max_body_to_host));
    if (!piece) {
      m_download.reset();
      return fail(piece.error());
    }
    Answer answer{{{"offset", piece->offset}, {"checked", piece->checked}}, std::move(piece->bytes)};
    if (piece->complete) {
      answer.head["revision"] = m_download->revision();
      m_download.reset();
    } else {
      answer.head["staging"] = true;
    }
    return answer;
  }

  Result<Answer> write(const wire::Frame& frame) {
    const auto space = space_of(frame.head);
    if (!space) {
      return fail(space.error());
    }
    NewContent content{frame.body, frame.head.at("text").get<bool>(), std::nullopt, mode_of(frame.head)};
    if (const std::string name = text_field(frame.head, "encoding"); !name.empty()) {
      content.encoding = encoding_from(name);
      if (!content.encoding) {
        return fail(ErrorCode::bad_request, "Unknown encoding");
      }
    }
    const ChangeRequest request = change_request(frame.head);
    return told(frame.head.contains("staging") ? m_changer.write_staged(*space, request, content)
                                               : m_changer.write(*space, request, content));
  }

  Result<Answer> edit(const wire::Frame& frame) {
    const auto space = space_of(frame.head);
    if (!space) {
      return fail(space.error());
    }
    const auto edits = EditTexts(frame.body).take(frame.head.at("edits"));
    return edits ? told(m_changer.edit(*space, change_request(frame.head), *edits)) : fail(edits.error());
  }

  Result<Answer> edit_set(const wire::Frame& frame) {
    const auto space = space_of(frame.head);
    const auto list_bytes = std::min(frame.head.at("listBytes").get<std::size_t>(), frame.body.size());
    const std::string_view body = frame.body;
    const auto list = space ? wire::parse_bounded(body.substr(0, list_bytes), k_list_depth) : fail(space.error());
    if (!list) {
      return fail(list.error());
    }
    EditTexts texts(body.substr(list_bytes));
    std::vector<FileEdits> files;
    std::size_t path_bytes = 0;
    for (json entry : list->at("files")) {
      auto edits = texts.take(entry.at("edits"));
      if (!edits) {
        return fail(edits.error());
      }
      entry["owner"] = frame.head.at("owner");
      entry["matchIsEnough"] = frame.head.value("matchIsEnough", false);
      files.push_back({change_request(entry), std::move(*edits)});
      path_bytes += files.back().request.path.size();
    }
    if (files.size() > wire::k_max_set_files || path_bytes > k_max_set_path_bytes) {
      return fail(ErrorCode::too_many_files,
                  fmt::format("Too many files: {} of at most {}", files.size(), wire::k_max_set_files),
                  "Edit fewer files in one call");
    }
    auto changes = m_changer.edit_all(
        *space, files,
        {.preview = frame.head.at("preview").get<bool>(), .is_replacement = frame.head.at("replacement").get<bool>()});
    return changes ? Result<Answer>(told_all(std::move(*changes))) : fail(changes.error());
  }

  Result<Answer> undo(const wire::Frame& frame) {
    const auto space = space_of(frame.head);
    if (!space) {
      return fail(space.error());
    }
    const std::string change = text_field(frame.head, "change");
    return told(
        m_changer.undo(*space, change_request(frame.head), change.empty() ? std::nullopt : std::optional(change)));
  }

  Result<Answer> stage(const wire::Frame& frame) {
    const auto space = space_of(frame.head);
    const auto staged = space ? m_changer.stage(*space, frame.head.at("path").get<std::string>(), frame.body,
                                                frame.head.at("first").get<bool>())
                              : fail(space.error());
    return staged ? Result<Answer>(Answer{{{"staging", true}}}) : fail(staged.error());
  }

  Result<Answer> abandon(const wire::Frame& /*frame*/) {
    m_changer.abandon_staged();
    m_download.reset();
    return Answer{};
  }

  Result<Answer> search(const wire::Frame& frame) {
    const auto space = space_of(frame.head);
    auto found = space ? run_search(*space, frame.head) : fail(space.error());
    return found ? Result<Answer>(Answer{std::move(found->head), std::move(found->body)}) : fail(found.error());
  }

  static json described(const ChangeAnswer& change) {
    return {{"path", change.path},
            {"revision", change.revision},
            {"before", change.before},
            {"change", change.change},
            {"size", change.size},
            {"encoding", name_of(change.encoding)},
            {"replacements", change.replacements},
            {"added", change.diff.added},
            {"removed", change.diff.removed},
            {"diffBytes", change.diff.text.size()},
            {"stale", change.since.has_value()},
            {"notes", change.notes}};
  }

  static Result<Answer> told(Result<ChangeAnswer> change) {
    if (!change) {
      return fail(change.error());
    }
    Answer answer{described(*change), std::move(change->diff.text)};
    if (change->since) {
      answer.body += change->since->text;
    }
    return answer;
  }

  /// Several changes: a list of them, then their diffs.
  static Answer told_all(std::vector<ChangeAnswer> changes) {
    json list = {{"changes", json::array()}};
    std::string diffs;
    for (ChangeAnswer& change : changes) {
      if (diffs.size() + change.diff.text.size() > k_max_set_diff_bytes) {
        change.diff.text.clear();
      }
      change.notes.resize(std::min(change.notes.size(), k_max_set_notes));
      for (std::string& note : change.notes) {
        note = printable_line(note, k_max_set_note_bytes);
      }
      diffs += change.diff.text;
      list["changes"].push_back(described(change));
    }
    Answer answer;
    answer.body = list.dump(-1, ' ', false, json::error_handler_t::replace);
    answer.head["listBytes"] = answer.body.size();
    answer.body += diffs;
    return answer;
  }

  FileChanger m_changer;
  std::unique_ptr<Download> m_download;
};

/// Files that are changed together are open together.
void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < k_wanted_descriptors) {
    limit.rlim_cur = std::min(limit.rlim_max, k_wanted_descriptors);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

std::string respond(Service& service, const wire::Frame& frame) {
  Result<Answer> answer;
  try {
    answer = service.handle(frame);
  } catch (const std::exception& error) {
    answer = fail(ErrorCode::bad_request, error.what());
  }
  if (!answer) {
    answer = Answer{{{"error", wire::to_json(answer.error())}}};
  }
  answer->head["id"] = frame.head.value("id", std::uint64_t{0});
  return wire::encode(answer->head, answer->body);
}

}  // namespace

int serve_files(const Fd& stream, const char* state_path) {
  ::prctl(PR_SET_NAME, "dockbridge-file");
  ::umask(022);
  ::signal(SIGCHLD, SIG_DFL);  // the session ignores it, and then the decoder's status would be lost
  allow_descriptors();
  keep_freed_memory(k_kept_bytes);
  const Fd state(::open(state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto changer = FileChanger::open(state.get());
  if (!changer) {
    return 1;
  }
  Service service(std::move(*changer));
  wire::FrameReader reader(wire::k_max_body_to_agent);
  std::string buffer(64 * 1024, '\0');
  while (true) {
    const auto frame = reader.next();
    if (!frame) {
      return 1;
    }
    if (*frame) {
      const std::string answer = respond(service, **frame);
      if (!write_all(stream.get(), answer)) {
        return 0;
      }
      service.settle();
      if ((*frame)->body.size() + answer.size() > k_kept_bytes) {
        ::malloc_trim(0);
      }
      continue;
    }
    pollfd polled{stream.get(), POLLIN, 0};
    if (::poll(&polled, 1, k_rest_after_ms) == 0) {
      service.rest();
    }
    const ssize_t got = ::read(stream.get(), buffer.data(), buffer.size());
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return 0;
    }
    reader.feed({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
  }
}

}  // namespace dockbridge::agent
