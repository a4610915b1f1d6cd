#include "agent/files/service/service.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <type_traits>
#include <utility>

#include "agent/files/change/file_changer.hpp"
#include "agent/files/service/change_requests.hpp"
#include "agent/files/service/copy_requests.hpp"
#include "agent/files/service/read_requests.hpp"
#include "agent/files/service/searching.hpp"
#include "util/file.hpp"
#include "util/memory.hpp"
#include "wire/file_messages.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"
#include "wire/route.hpp"

namespace dockbridge::agent {

namespace {

using wire::Operation;

constexpr rlim_t k_wanted_descriptors = 4096;
constexpr int k_rest_after_ms = 1000;
/// Memory of a request above this size is returned to the system.
constexpr std::size_t k_kept_bytes = 1024 * 1024;

/// A frame that answers `request`.
std::string encoded_answer(const wire::Frame& request, nlohmann::json head, std::string_view body) {
  wire::set_id(head, wire::id_in(request.head).value_or(0));
  return wire::encode(head, body);
}

/// Dispatches requests, and makes frames of the answers.
class Service {
 public:
  explicit Service(FileChanger changer) : m_changer(std::move(changer)) {}

  /// Must be called after an answer was sent.
  void run_deferred_work() { m_changer.run_deferred_work(); }
  /// Must be called when no request has arrived for a while.
  void rest() { m_changer.rest(); }

  Result<std::string> handle(const wire::Frame& frame) {
    const wire::Route route = wire::route_in(frame.head);
    if (!route.operation) {
      return unknown(route.unknown_operation.value_or(""));
    }
    const auto with_changer = [this](auto serve) {
      return [this, serve](const FileSpace& space, const auto& request) { return serve(space, m_changer, request); };
    };
    switch (*route.operation) {
      case Operation::file_read:
        return answer<wire::FileReadRequest>(frame, with_changer(read_page));
      case Operation::file_bytes:
        return answer<wire::FileBytesRequest>(frame, read_bytes);
      case Operation::file_image:
        return answer<wire::FileImageRequest>(frame, with_changer(read_image));
      case Operation::file_open:
        return answer<wire::FileOpenRequest>(frame, [this](const FileSpace& space, const auto& request) {
          return m_copies.open(space, m_changer, request);
        });
      case Operation::file_next:
        return answer<wire::FileNextRequest>(
            frame, [this](const wire::FileNextRequest& request) { return m_copies.next(request); });
      case Operation::file_stage:
        return answer<wire::FileStageRequest>(frame, with_changer(stage_content));
      case Operation::file_abandon:
        return answer<wire::FileAbandonRequest>(frame, [this](const wire::FileAbandonRequest&) { return abandon(); });
      case Operation::file_write:
        return answer<wire::FileWriteRequest>(frame, with_changer(write_file));
      case Operation::file_edit:
        return answer<wire::FileEditRequest>(frame, with_changer(edit_file));
      case Operation::file_edit_set:
        return answer<wire::FileEditSetRequest>(frame, with_changer(edit_files));
      case Operation::file_undo:
        return answer<wire::FileUndoRequest>(frame, with_changer(undo_change));
      case Operation::file_list:
        return answer<wire::FileListRequest>(frame, list_files);
      case Operation::file_glob:
        return answer<wire::FileGlobRequest>(frame, glob_files);
      case Operation::file_grep:
        return answer<wire::FileGrepRequest>(frame, grep_files);
      default:
        return unknown(name_of(*route.operation));
    }
  }

 private:
  static tl::unexpected<Error> unknown(std::string_view name) {
    return fail(ErrorCode::unknown_operation, fmt::format("Unknown operation '{}'", name));
  }

  /// Calls `serve` with the request and, if it takes them, the files that the request may access. It returns an answer
  /// or a complete frame.
  template <typename Request, typename Serve>
  static Result<std::string> answer(const wire::Frame& frame, Serve serve) {
    const auto request = wire::message_from<Request>(frame.head, ErrorCode::bad_request, frame.body);
    if (!request) {
      return fail(request.error());
    }
    if constexpr (std::is_invocable_v<Serve, const Request&>) {
      return encoded(frame, serve(*request));
    } else {
      const auto root = wire::read_fields(frame.head, ErrorCode::bad_request, wire::root_from);
      const auto space = root ? FileSpace::open(*root) : fail(root.error());
      return space ? encoded(frame, serve(*space, *request)) : fail(space.error());
    }
  }

  static Result<std::string> encoded(const wire::Frame& request, Result<wire::Frame> answer) {
    return answer ? Result<std::string>(encoded_answer(request, std::move(answer->head), answer->body))
                  : fail(answer.error());
  }
  template <wire::Message Answer>
  static Result<std::string> encoded(const wire::Frame& request, const Result<Answer>& answer) {
    if (!answer) {
      return fail(answer.error());
    }
    auto message = wire::outgoing(*answer);
    return encoded_answer(request, std::move(message.head), message.body());
  }

  Result<wire::FileAbandonAnswer> abandon() {
    m_changer.abandon_staged();
    m_copies.close();
    return wire::FileAbandonAnswer{};
  }

  FileChanger m_changer;
  CopyRequests m_copies;
};

/// Raises the limit on open files: all files of an edit set are open together.
void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < k_wanted_descriptors) {
    limit.rlim_cur = std::min(limit.rlim_max, k_wanted_descriptors);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

std::string respond(Service& service, const wire::Frame& frame) {
  Result<std::string> answer;
  try {
    answer = service.handle(frame);
  } catch (const std::exception& error) {
    answer = fail(ErrorCode::bad_request, error.what());
  }
  return answer ? std::move(*answer) : encoded_answer(frame, wire::error_head(answer.error()), "");
}

}  // namespace

int serve_files(const Fd& stream, const char* state_path) {
  ::prctl(PR_SET_NAME, "dockbridge-file");
  ::umask(022);
  ::signal(SIGCHLD, SIG_DFL);  // the session ignores it, which would lose the exit status of the decoder
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
      service.run_deferred_work();
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
