#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "agent/session/session.hpp"
#include "agent/session/survivors.hpp"
#include "agent/spool.hpp"
#include "util/file.hpp"
#include "wire/screen_facts.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

constexpr std::size_t k_most_context = 50;
constexpr std::size_t k_most_screen_bytes = wire::k_max_body_to_host - 4096;
/// A listing travels in one body; what does not fit is counted.
constexpr std::size_t k_max_list_bytes = wire::k_max_body_to_host - 4096;

}  // namespace

Result<wire::TerminalSize> Session::terminal_size_of(const json& head) {
  const auto columns = head.at("terminal").at(0).get<std::uint64_t>();
  const auto rows = head.at("terminal").at(1).get<std::uint64_t>();
  if (columns < 1 || columns > wire::k_largest_terminal_side || rows < 1 || rows > wire::k_largest_terminal_side) {
    return fail(ErrorCode::bad_request, "Not a terminal size");
  }
  return wire::TerminalSize{static_cast<std::uint16_t>(columns), static_cast<std::uint16_t>(rows)};
}

Result<std::string> Session::process_id_of(const json& head) {
  auto id = head.at("process").get<std::string>();
  if (!wire::is_process_id(id)) {
    return fail(ErrorCode::bad_request, "Not a process id");
  }
  return id;
}

Result<std::string> Session::numbered_process_of(const json& head) {
  const auto owner = head.at("owner").get<std::string>();
  const auto number = head.at("number").get<std::uint64_t>();
  for (std::string& id : m_numbers.candidates(owner, number)) {
    const auto known = m_processes.find(id);
    const auto record = known != m_processes.end() ? Result<Record>(known->second->record) : m_state.read(id);
    if (record && record->meta.owner == owner && record->meta.number == number) {
      return std::move(id);
    }
  }
  if (number > 0 && number <= m_numbers.highest(owner)) {
    return fail(ErrorCode::process_expired, fmt::format("Process expired: p{}", number),
                "Run the command again. The option --retention-age keeps processes longer");
  }
  return fail(no_such_process(fmt::format("p{}", number)));
}

Result<void> Session::read(std::uint64_t request, const wire::Frame& frame) {
  const json& head = frame.head;
  const auto id = process_id_of(head);
  if (!id) {
    return fail(id.error());
  }
  const bool is_err = head.at("stream").get<std::string>() == "err";
  const auto spool = SpoolReader::open(m_state.fd(), is_err ? err_name(*id) : out_name(*id));
  if (!spool) {
    return fail(spool.error());
  }
  if (const auto record = spool->exists() ? Record() : m_state.read(*id); !record) {
    return fail(record.error());
  }
  const auto slice = spool->read(head.at("offset").get<std::uint64_t>(),
                                 std::min(head.at("max").get<std::size_t>(), wire::k_max_read_bytes));
  if (!slice) {
    return fail(slice.error());
  }
  answer(request, {{"offset", slice->offset}, {"stream", wire::to_json(slice->state)}}, slice->bytes);
  return {};
}

Result<void> Session::input(std::uint64_t request, const wire::Frame& frame) {
  const auto process = live_process_of(frame.head);
  const auto once = once_of(frame.head, Order::input);
  if (!process || !once) {
    return fail(!process ? process.error() : once.error());
  }
  if (frame.body.size() > k_max_control_payload - (*once ? sizeof(OnceHeader) : 0)) {
    return fail(ErrorCode::bad_request, "Too much input for one request");
  }
  const std::uint32_t how =
      (frame.head.at("eof").get<bool>() ? k_then_end : 0) | (frame.head.value("paste", false) ? k_as_paste : 0);
  KeeperLink& link = *(*process)->link;
  if (auto sent = *once ? link.once(**once, how, frame.body) : link.input(frame.body, how); !sent) {
    return sent;
  }
  (*process)->input_requests.push_back({request, frame.body.size(), once->has_value()});
  return {};
}

Result<void> Session::signal(std::uint64_t request, const wire::Frame& frame) {
  const int number = frame.head.at("signal").get<int>();
  if (number < 1 || number > SIGRTMAX) {
    return fail(ErrorCode::bad_request, "Not a signal number");
  }
  const auto process = live_process_of(frame.head);
  if (!process) {
    // Nobody is left who could tell whether it was sent before.
    return frame.head.contains("once") ? fail(process.error())
                                       : reach_survivors(request, frame.head, number, process.error());
  }
  const auto once = once_of(frame.head, Order::signal);
  if (!once) {
    return fail(once.error());
  }
  KeeperLink& link = *(*process)->link;
  if (auto sent = *once ? link.once(**once, static_cast<std::uint32_t>(number), {}) : link.signal(number); !sent) {
    return sent;
  }
  if (*once) {
    (*process)->input_requests.push_back({request, 1, true});
  } else {
    answer(request, json::object());
  }
  return {};
}

Result<void> Session::end(std::uint64_t request, const wire::Frame& frame) {
  const auto process = live_process_of(frame.head);
  if (!process) {
    // Without a keeper there is nobody to wait for the grace time.
    return reach_survivors(request, frame.head, SIGKILL, process.error());
  }
  const auto cause = frame.head.at("cause").get<std::string>() == name_of(wire::Cause::cancelled)
                         ? wire::Cause::cancelled
                         : wire::Cause::terminated;
  if (auto sent = (*process)->link->end_tree(cause, frame.head.at("graceMs").get<std::uint32_t>()); !sent) {
    return sent;
  }
  answer(request, json::object());
  return {};
}

Result<void> Session::reach_survivors(std::uint64_t request, const json& head, int signal, const Error& otherwise) {
  const auto id = process_id_of(head);
  if (!id || otherwise.code != ErrorCode::process_ended || signal_survivors(*id, signal) == 0) {
    return fail(otherwise);
  }
  answer(request, json::object());
  return {};
}

Result<void> Session::keys(std::uint64_t request, const wire::Frame& frame) {
  const auto process = live_process_of(frame.head);
  if (!process) {
    return fail(process.error());
  }
  std::string names;
  for (const json& name : frame.head.at("keys")) {
    names += (names.empty() ? "" : " ") + name.get<std::string>();
  }
  const auto once = once_of(frame.head, Order::keys);
  if (!once) {
    return fail(once.error());
  }
  KeeperLink& link = *(*process)->link;
  if (auto sent = *once ? link.once(**once, 0, names) : link.keys(names); !sent) {
    return sent;
  }
  (*process)->input_requests.push_back({request, frame.head.at("keys").size(), once->has_value()});
  return {};
}

Result<void> Session::resize(std::uint64_t request, const wire::Frame& frame) {
  const auto process = live_process_of(frame.head);
  if (!process) {
    return fail(process.error());
  }
  const auto size = terminal_size_of(frame.head);
  if (auto sent = size ? (*process)->link->resize(*size) : fail(size.error()); !sent) {
    return sent;
  }
  answer(request, json::object());
  return {};
}

/// The keeper writes the file while it lives; after that the last one counts.
Result<void> Session::screen(std::uint64_t request, const wire::Frame& frame) {
  const auto id = process_id_of(frame.head);
  const auto process = id ? find(*id) : fail(id.error());
  if (!process) {
    return fail(process.error());
  }
  if ((*process)->link) {
    if (auto sent = (*process)->link->screen(); !sent) {
      return sent;
    }
    (*process)->screen_requests.push_back(request);
  } else {
    answer_screen(request, *id);
    forget_if_done(*id);
  }
  return {};
}

void Session::answer_screen(std::uint64_t request, const std::string& id) {
  const auto stored = read_regular_at(m_state.fd(), screen_name(id), k_most_screen_bytes);
  const std::size_t end = stored ? stored->find('\n') : std::string::npos;
  const auto about =
      end == std::string::npos
          ? fail(ErrorCode::no_screen, "")
          : wire::parse_bounded(std::string_view(*stored).substr(0, end), 3).and_then(wire::screen_facts_from_json);
  if (!about) {
    refuse(request, {ErrorCode::no_screen, "The process has no screen: it was not started on a terminal",
                     "Start the command with tty, or read its output without screen"});
    return;
  }
  answer(request, {{"screen", wire::to_json(*about)}}, std::string_view(*stored).substr(end + 1));
}

Result<void> Session::grep(std::uint64_t request, const wire::Frame& frame) {
  const json& head = frame.head;
  const auto id = process_id_of(head);
  const auto record = id ? m_state.read(*id) : fail(id.error());
  if (!record) {
    return fail(record.error());
  }
  auto search = OutputGrep::make({head.at("pattern").get<std::string>(), head.at("ignoreCase").get<bool>(),
                                  std::min(head.at("context").get<std::size_t>(), k_most_context),
                                  head.at("most").get<std::size_t>()});
  if (!search) {
    return fail(search.error());
  }
  m_greps.push_back({request, *id, std::move(*search)});
  return {};
}

void Session::advance_greps() {
  std::erase_if(m_greps, [&](Grep& grep) {
    const auto done = grep.search.advance(m_state.fd(), grep.process);
    if (!done) {
      refuse(grep.request, done.error());
      return true;
    }
    if (*done) {
      const GrepLines& out = grep.search.out();
      const GrepLines& err = grep.search.err();
      answer(grep.request,
             {{"matches", {out.matches(), err.matches()}},
              {"shown", {out.shown(), err.shown()}},
              {"outBytes", out.text().size()}},
             out.text() + err.text());
    }
    return *done;
  });
}

Result<void> Session::list(std::uint64_t request, const wire::Frame& frame) {
  const auto owner = frame.head.at("owner").get<std::string>();
  const auto most = frame.head.at("most").get<std::size_t>();
  const auto most_finished = frame.head.value("finished", most);
  struct Listed {
    std::string id;
    Record record;
    milliseconds ago{0};  ///< since its end as recorded, else since its start
  };
  std::vector<Listed> active;  // not recorded as closed; they may have lost their keeper
  std::vector<Listed> finished;
  std::size_t unreadable = 0;
  const Moment at = now();
  m_state.visit([&](const std::string& id, const Result<Record>& record) {
    unreadable += record ? 0 : 1;
    if (record && record->meta.owner == owner) {
      const bool has_finished = record->status && record->status->closed;
      const Moment& moment = has_finished ? record->status->ended : record->meta.started;
      (has_finished ? finished : active).push_back({id, *record, age(moment, at)});
    }
  });
  const std::size_t total = active.size() + finished.size();
  const auto latest_first = [](const Listed& a, const Listed& b) { return a.ago < b.ago; };
  std::string body = "{\"processes\":[";
  std::size_t listed = 0;
  bool has_room = true;
  const auto add = [&](wire::ProcessState state) {
    state.command = utf8_prefix(state.command, 200);
    const std::string text = to_json(state).dump(-1, ' ', false, json::error_handler_t::replace);
    has_room = has_room && listed < most && body.size() + text.size() <= k_max_list_bytes;
    if (has_room) {
      body += (listed++ == 0 ? "" : ",") + text;
    }
  };
  const auto describe = [&](const Listed& entry) {
    const auto known = m_processes.find(entry.id);
    const bool has_keeper = known != m_processes.end() && known->second->link.has_value();
    auto state = describe_from_disk(m_state, entry.id, entry.record, has_keeper, at);
    unreadable += state ? 0 : 1;
    return state;
  };
  std::sort(active.begin(), active.end(), latest_first);
  for (Listed& entry : active) {
    const auto state = describe(entry);
    if (state && (state->phase == wire::Phase::running || state->phase == wire::Phase::exited)) {
      add(*state);
    } else if (state) {
      finished.push_back(std::move(entry));
    }
  }
  std::sort(finished.begin(), finished.end(), latest_first);
  for (std::size_t i = 0, described = 0; i < finished.size() && described < most_finished && has_room; ++i) {
    if (const auto state = describe(finished[i])) {
      add(*state);
      ++described;
    }
  }
  body += "]}";
  answer(request, {{"left", total - listed}, {"unreadable", unreadable}}, body);
  return {};
}

}  // namespace dockbridge::agent
