#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "agent/session/session.hpp"
#include "agent/session/survivors.hpp"
#include "agent/spool.hpp"
#include "util/file.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

static_assert(wire::k_input_piece_bytes + sizeof(OnceHeader) <= k_max_control_payload);

}  // namespace

Result<std::string> Session::numbered_process(const std::string& owner, std::uint64_t number) {
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

Result<void> Session::read(std::uint64_t request, const wire::ReadRequest& message) {
  const std::string& id = message.process;
  const auto spool = SpoolReader::open(m_state.fd(), message.stream == wire::Stream::err ? err_name(id) : out_name(id));
  if (!spool) {
    return fail(spool.error());
  }
  if (const auto record = spool->exists() ? Record() : m_state.read(id); !record) {
    return fail(record.error());
  }
  auto slice = spool->read(message.offset, std::min<std::uint64_t>(message.max, wire::k_max_read_bytes));
  if (!slice) {
    return fail(slice.error());
  }
  const wire::ReadAnswer reply{slice->offset, std::move(slice->bytes), slice->state};
  answer(request, wire::to_json(reply), reply.bytes);
  return {};
}

Result<void> Session::input(std::uint64_t request, const wire::InputRequest& message) {
  const auto process = find_live(message.process);
  if (!process) {
    return fail(process.error());
  }
  const std::string_view bytes = message.input;
  if (bytes.size() > k_max_control_payload - (message.once ? sizeof(OnceHeader) : 0)) {
    return fail(ErrorCode::bad_request, "Too much input for one request");
  }
  const std::uint32_t how = (message.then_end ? k_then_end : 0) | (message.as_paste ? k_as_paste : 0);
  KeeperLink& link = *(*process)->link;
  if (auto sent = message.once ? link.once(header_of(*message.once, Order::input), how, bytes) : link.input(bytes, how);
      !sent) {
    return sent;
  }
  (*process)->input_requests.push_back({request, bytes.size(), message.once.has_value()});
  return {};
}

Result<void> Session::signal(std::uint64_t request, const wire::SignalRequest& message) {
  const auto process = find_live(message.process);
  if (!process) {
    // Nobody is left who could tell whether it was sent before.
    return message.once ? fail(process.error())
                        : reach_survivors(request, message.process, message.number, process.error());
  }
  KeeperLink& link = *(*process)->link;
  if (auto sent = message.once ? link.once(header_of(*message.once, Order::signal),
                                           static_cast<std::uint32_t>(message.number), {})
                               : link.signal(message.number);
      !sent) {
    return sent;
  }
  if (message.once) {
    (*process)->input_requests.push_back({request, 1, true});
  } else {
    answer(request, json::object());
  }
  return {};
}

Result<void> Session::end(std::uint64_t request, const wire::EndRequest& message) {
  const auto process = find_live(message.process);
  if (!process) {
    // Without a keeper there is nobody to wait for the grace time.
    return reach_survivors(request, message.process, SIGKILL, process.error());
  }
  const auto grace_ms = static_cast<std::uint32_t>(message.grace.count());
  if (auto sent = (*process)->link->end_tree(message.cause, grace_ms); !sent) {
    return sent;
  }
  answer(request, json::object());
  return {};
}

Result<void> Session::reach_survivors(std::uint64_t request, const std::string& process, int signal,
                                      const Error& otherwise) {
  if (otherwise.code != ErrorCode::process_ended || signal_survivors(process, signal) == 0) {
    return fail(otherwise);
  }
  answer(request, json::object());
  return {};
}

Result<void> Session::keys(std::uint64_t request, const wire::KeysRequest& message) {
  const auto process = find_live(message.process);
  if (!process) {
    return fail(process.error());
  }
  const std::string names = fmt::format("{}", fmt::join(message.keys, " "));
  KeeperLink& link = *(*process)->link;
  if (auto sent = message.once ? link.once(header_of(*message.once, Order::keys), 0, names) : link.keys(names); !sent) {
    return sent;
  }
  (*process)->input_requests.push_back({request, message.keys.size(), message.once.has_value()});
  return {};
}

Result<void> Session::resize(std::uint64_t request, const wire::ResizeRequest& message) {
  const auto process = find_live(message.process);
  if (auto sent = process ? (*process)->link->resize(message.size) : fail(process.error()); !sent) {
    return sent;
  }
  answer(request, json::object());
  return {};
}

/// The keeper writes the file while it lives; after that the last one counts.
Result<void> Session::screen(std::uint64_t request, const wire::ScreenRequest& message) {
  const auto process = find(message.process);
  if (!process) {
    return fail(process.error());
  }
  if ((*process)->link) {
    if (auto sent = (*process)->link->screen(); !sent) {
      return sent;
    }
    (*process)->screen_requests.push_back(request);
  } else {
    answer_screen(request, message.process);
    forget_if_done(message.process);
  }
  return {};
}

void Session::answer_screen(std::uint64_t request, const std::string& id) {
  const auto stored = read_regular_at(m_state.fd(), screen_name(id), wire::k_max_text_body);
  const std::size_t end = stored ? stored->find('\n') : std::string::npos;
  const auto about =
      end == std::string::npos
          ? fail(ErrorCode::no_screen, "")
          : wire::parse_bounded(std::string_view(*stored).substr(0, end), 3).and_then([](const json& facts) {
              return wire::message_from<wire::ScreenFacts>(facts, ErrorCode::protocol_violation);
            });
  if (!about) {
    refuse(request, {ErrorCode::no_screen, "The process has no screen: it was not started on a terminal",
                     "Start the command with tty, or read its output without screen"});
    return;
  }
  const wire::ScreenAnswer reply{*about, stored->substr(end + 1)};
  answer(request, wire::to_json(reply), reply.text);
}

Result<void> Session::grep(std::uint64_t request, const wire::GrepRequest& message) {
  const auto record = m_state.read(message.process);
  if (!record) {
    return fail(record.error());
  }
  auto search = OutputGrep::make(message.query);
  if (!search) {
    return fail(search.error());
  }
  m_greps.push_back({request, message.process, std::move(*search)});
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
      const wire::GrepAnswer reply{out.text(), err.text(), {out.matches(), err.matches()}, {out.shown(), err.shown()}};
      auto message = wire::outgoing(reply);
      answer(grep.request, std::move(message.head), message.body());
    }
    return *done;
  });
}

void Session::list(std::uint64_t request, const wire::ListRequest& message) {
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
    if (record && record->meta.owner == message.owner) {
      const bool has_finished = record->status && record->status->closed;
      const Moment& moment = has_finished ? record->status->ended : record->meta.started;
      (has_finished ? finished : active).push_back({id, *record, age(moment, at)});
    }
  });
  const std::size_t total = active.size() + finished.size();
  const auto latest_first = [](const Listed& a, const Listed& b) { return a.ago < b.ago; };
  wire::ListBody body;
  bool has_room = true;
  const auto add = [&](wire::ProcessState state) {
    state.command = utf8_prefix(state.command, 200);
    has_room = has_room && body.size() < message.most && body.add(state);
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
  for (std::size_t i = 0, described = 0; i < finished.size() && described < message.most_finished && has_room; ++i) {
    if (const auto state = describe(finished[i])) {
      add(*state);
      ++described;
    }
  }
  answer(request, wire::to_json(wire::ListAnswer{.left_out = total - body.size(), .unreadable = unreadable}),
         body.text());
}

}  // namespace dockbridge::agent
