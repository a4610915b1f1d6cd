#include "agent/files/service.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>

#include "agent/files/binary_kind.hpp"
#include "agent/files/download.hpp"
#include "agent/files/file_changer.hpp"
#include "agent/files/searching.hpp"
#include "agent/files/text_page.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"
#include "util/memory.hpp"
#include "util/text.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

constexpr std::size_t k_most_page_bytes = wire::k_max_body_to_host / 2;
constexpr std::size_t k_most_edits = 1000;
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
  return request;
}

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
        {"file.read", &Service::read},   {"file.bytes", &Service::bytes},     {"file.write", &Service::write},
        {"file.edit", &Service::edit},   {"file.undo", &Service::undo},       {"file.stage", &Service::stage},
        {"file.list", &Service::search}, {"file.abandon", &Service::abandon}, {"file.glob", &Service::search},
        {"file.grep", &Service::search}, {"file.open", &Service::open},       {"file.next", &Service::next}};
    const auto& name = frame.head.at("op").get_ref<const std::string&>();
    const auto operation = k_operations.find(name);
    if (operation == k_operations.end()) {
      return fail("unknown_operation", "the agent does not know the operation '" + name + "'");
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
      return fail("nothing_staged", "No file is open for this copy", "Start the copy again");
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
        return fail("bad_request", "no such encoding");
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
    std::vector<Edit> edits;
    std::size_t at = 0;
    for (const json& sizes : frame.head.at("edits")) {
      const auto old_bytes = sizes.at(0).get<std::size_t>();
      const auto new_bytes = sizes.at(1).get<std::size_t>();
      if (old_bytes > frame.body.size() - at || new_bytes > frame.body.size() - at - old_bytes ||
          edits.size() == k_most_edits) {
        return fail("bad_request", "the edits are longer than the body, or too many");
      }
      edits.push_back(
          {frame.body.substr(at, old_bytes), frame.body.substr(at + old_bytes, new_bytes), sizes.at(2).get<bool>()});
      at += old_bytes + new_bytes;
    }
    return told(m_changer.edit(*space, change_request(frame.head), edits));
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

  static Result<Answer> told(Result<ChangeAnswer> change) {
    if (!change) {
      return fail(change.error());
    }
    Answer answer{{{"path", change->path},
                   {"revision", change->revision},
                   {"before", change->before},
                   {"change", change->change},
                   {"size", change->size},
                   {"encoding", name_of(change->encoding)},
                   {"replacements", change->replacements},
                   {"added", change->diff.added},
                   {"removed", change->diff.removed},
                   {"diffBytes", change->diff.text.size()},
                   {"stale", change->since.has_value()},
                   {"notes", change->notes}},
                  std::move(change->diff.text)};
    if (change->since) {
      answer.body += change->since->text;
    }
    return answer;
  }

  FileChanger m_changer;
  std::unique_ptr<Download> m_download;
};

std::string respond(Service& service, const wire::Frame& frame) {
  Result<Answer> answer;
  try {
    answer = service.handle(frame);
  } catch (const std::exception& error) {
    answer = fail("bad_request", error.what());
  }
  if (!answer) {
    const Error& error = answer.error();
    answer = Answer{{{"error", {{"code", error.code}, {"message", error.message}, {"nextStep", error.next_step}}}}};
  }
  answer->head["id"] = frame.head.value("id", std::uint64_t{0});
  return wire::encode(answer->head, answer->body);
}

}  // namespace

int serve_files(const Fd& stream, const char* state_path) {
  ::prctl(PR_SET_NAME, "dockbridge-file");
  ::umask(022);
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
