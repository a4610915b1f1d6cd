#include "sandbox/code_sessions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "util/encoding.hpp"
#include "util/json_text.hpp"
#include "util/random.hpp"
#include "util/sha256.hpp"
#include "util/text.hpp"

namespace dockbridge::sandbox {

namespace {

/// Ended processes among which the one that had a name before is looked for.
constexpr std::size_t k_searched_ends = 200;
constexpr std::size_t k_max_handles = 256;
constexpr std::size_t k_max_known_ends = 1000;
constexpr std::size_t k_event_read_bytes = 256UL * 1024;
/// Of a long stream, only the end is read if that suffices.
constexpr std::uint64_t k_long_stream = 1024UL * 1024;
constexpr int k_max_start_attempts = 24;
/// Time for which a count of sessions is used without a new list.
constexpr milliseconds k_count_age{60'000};
constexpr std::size_t k_max_counts = 1000;
constexpr std::size_t k_max_used_names = 10'000;
constexpr milliseconds k_send_interval{5};
/// Time without progress after which the driver is considered stuck.
constexpr milliseconds k_send_patience{5000};
constexpr milliseconds k_ask_patience{10'000};
constexpr std::size_t k_token_length = 16;  // of a process id
constexpr std::size_t k_max_shown_line = 80;
constexpr std::size_t k_max_shown_output = 400;

std::string shown_line(const std::string& line) {
  return line.empty() ? "" : fmt::format(": `{}`", printable_line(line, k_max_shown_line));
}

Error busy_error(const SessionHandle& session) {
  return {ErrorCode::session_busy, fmt::format("The session runs cell {}{}", session->last_cell(),
                                               shown_line(session->first_line_of_running()))};
}

std::string digest_of(const std::string& text) {
  return sha256_hex(text).substr(0, wire::k_digest_length);
}

std::string idle_text(const ListedSession& session) {
  return session.is_busy ? "busy" : fmt::format("idle {} s", session.state.idle_ms / 1000);
}

}  // namespace

// ---- SessionProcess

std::uint64_t SessionProcess::next_offset() const {
  const MutexLock lock(m_mutex);
  return m_track.next_offset();
}

std::uint64_t SessionProcess::last_cell() const {
  const MutexLock lock(m_mutex);
  return m_track.last_cell();
}

bool SessionProcess::is_busy() const {
  const MutexLock lock(m_mutex);
  return m_track.is_busy();
}

std::optional<CellRecord> SessionProcess::cell() const {
  const MutexLock lock(m_mutex);
  return m_track.cell();
}

CellProgress SessionProcess::progress_of(std::uint64_t cell, const std::string& key) const {
  const MutexLock lock(m_mutex);
  return m_track.progress_of(cell, key);
}

std::optional<SessionEvent> SessionProcess::take_answer(std::uint64_t request) {
  const MutexLock lock(m_mutex);
  return m_track.take_answer(request);
}

void SessionProcess::add(std::uint64_t offset, std::string_view bytes) {
  const MutexLock lock(m_mutex);
  m_track.add(offset, bytes);
}

void SessionProcess::restart_track() {
  const MutexLock lock(m_mutex);
  m_track = {};
}

void SessionProcess::note_first_line(std::uint64_t cell, std::string line) {
  const MutexLock lock(m_mutex);
  m_sent_line = {cell, std::move(line)};
}

std::string SessionProcess::first_line_of_running() const {
  const MutexLock lock(m_mutex);
  const auto& cell = m_track.cell();
  if (!cell || cell->end) {
    return "";
  }
  return cell->first_line.empty() && m_sent_line.first == cell->number ? m_sent_line.second : cell->first_line;
}

void SessionProcess::note_start(bool is_warm, Clock::time_point began) {
  const MutexLock lock(m_mutex);
  if (!m_track.ready()) {
    m_start = {is_warm, began};
  }
}

void SessionProcess::note_sent_key(std::string key) {
  const MutexLock lock(m_mutex);
  m_sent_key = std::move(key);
}

SessionProcess::News SessionProcess::take_news(Clock::time_point now) {
  const MutexLock lock(m_mutex);
  News news;
  if (m_start && m_track.ready()) {
    news.start = {m_start->first, now - m_start->second};
    m_start.reset();
  }
  if (const auto& cell = m_track.cell(); !m_sent_key.empty() && cell && cell->end && cell->key == m_sent_key) {
    news.ended_cell = {cell->end->status, cell->end->seconds};
    m_sent_key.clear();
  }
  return news;
}

bool SessionProcess::take_running_cell() {
  const MutexLock lock(m_mutex);
  const bool is_running = !m_sent_key.empty() && m_track.cell() && m_track.cell()->key == m_sent_key;
  m_sent_key.clear();
  return is_running;
}

void SessionProcess::note_delivered(std::uint64_t cell) {
  const MutexLock lock(m_mutex);
  m_delivered = std::max(m_delivered, cell);
}

bool SessionProcess::was_delivered(std::uint64_t cell) const {
  const MutexLock lock(m_mutex);
  return m_delivered >= cell;
}

void SessionProcess::note_left_running(std::uint64_t cell) {
  const MutexLock lock(m_mutex);
  m_left_running = cell;
}

bool SessionProcess::owes_last_result() const {
  const MutexLock lock(m_mutex);
  return m_left_running > m_delivered && m_left_running == m_track.last_cell() && !m_track.is_busy();
}

wire::Offsets SessionProcess::output_end() const {
  const MutexLock lock(m_mutex);
  return m_track.output_end();
}

// ---- CodeSessions

SessionHandle CodeSessions::handle(const std::string& process, const std::string& owner) {
  const MutexLock lock(m_mutex);
  SessionHandle& known = m_handles[process];
  if (!known) {
    known = std::make_shared<SessionProcess>(process, owner);
    m_latest_handles.push_back(process);
    if (m_latest_handles.size() > k_max_handles) {
      m_handles.erase(m_latest_handles.front());
      m_latest_handles.pop_front();
    }
    return m_handles[process];
  }
  if (m_latest_handles.back() != process) {
    m_latest_handles.remove(process);
    m_latest_handles.push_back(process);
  }
  return known;
}

void CodeSessions::drop(const std::string& process) {
  const MutexLock lock(m_mutex);
  m_handles.erase(process);
  m_latest_handles.remove(process);
}

void CodeSessions::remember(const SessionKey& key, const std::string& process) {
  const MutexLock lock(m_mutex);
  if (m_names.size() >= k_max_handles) {
    m_names.clear();
  }
  m_names[key] = process;
  if (m_used_names.size() < k_max_used_names) {
    m_used_names.insert(key);
  }
}

void CodeSessions::forget(const SessionKey& key, const std::string& process) {
  const MutexLock lock(m_mutex);
  const auto known = m_names.find(key);
  if (known != m_names.end() && known->second == process) {
    m_names.erase(known);
  }
  if (const auto handle = m_handles.find(process); handle != m_handles.end()) {
    handle->second->restart_track();  // frees memory; its end can be read again
  }
}

void CodeSessions::note_end_is_known(const std::string& process) {
  const MutexLock lock(m_mutex);
  if (m_known_ends.size() >= k_max_known_ends) {
    m_known_ends.clear();
  }
  m_known_ends.insert(process);
}

void CodeSessions::note_start(const SessionHandle& session, const wire::ProcessState& state, Clock::time_point began) {
  session->note_start(state.session && state.session->is_warm, began);
}

void CodeSessions::note_died(const SessionHandle& session) {
  if (session->take_running_cell()) {
    m_counts.count_died();
  }
}

Result<CodeSessions::Found> CodeSessions::look_up(const SessionKey& key, const CallLimit& limit) {
  const auto list = m_processes.list(key.owner, k_searched_ends, limit);
  if (!list) {
    return fail(list.error());
  }
  Found found;
  for (const wire::ProcessState& state : list->processes) {
    if (!state.session || state.session->kind != key.kind || state.session->name.empty() || state.owner != key.owner) {
      continue;
    }
    found.live_sessions += state.running() ? 1 : 0;
    if (state.session->name != key.name) {
      continue;
    }
    auto& place = state.running() ? found.live : found.ended;
    if (!place || place->number < state.number) {
      place = state;
    }
  }
  const MutexLock lock(m_mutex);
  if (m_listed_counts.size() >= k_max_counts) {
    m_listed_counts.clear();
  }
  m_listed_counts[{key.owner, key.kind}] = {found.live_sessions, Clock::now()};
  return found;
}

bool CodeSessions::reserve_unlisted(const SessionStart& start, Clock::time_point now) {
  const MutexLock lock(m_mutex);
  if (m_used_names.size() >= k_max_used_names ||
      m_used_names.contains({start.owner, start.session.kind, start.session.name})) {
    return false;
  }
  const auto count = m_listed_counts.find({start.owner, start.session.kind});
  if (count == m_listed_counts.end() || now - count->second.counted >= k_count_age ||
      (start.max_sessions > 0 && 2 * (count->second.sessions + 1) > start.max_sessions)) {
    return false;
  }
  ++count->second.sessions;
  return true;
}

void CodeSessions::add_to_count(const SessionStart& start, std::ptrdiff_t sessions) {
  const MutexLock lock(m_mutex);
  const auto count = m_listed_counts.find({start.owner, start.session.kind});
  if (count != m_listed_counts.end()) {
    count->second.sessions += static_cast<std::size_t>(sessions);
  }
}

SessionHandle CodeSessions::known(const SessionKey& key) {
  const MutexLock lock(m_mutex);
  const auto process = m_names.find(key);
  const auto handle = process == m_names.end() ? m_handles.end() : m_handles.find(process->second);
  return handle == m_handles.end() ? nullptr : handle->second;
}

Result<SessionHandle> CodeSessions::use(const SessionKey& key, const wire::ProcessState& state,
                                        const CallLimit& limit) {
  auto session = handle(state.id, key.owner);
  if (const auto read = read_events(session, limit, state.side.total); !read) {
    return fail(read.error());
  }
  remember(key, state.id);
  return session;
}

Result<SessionHandle> CodeSessions::find(const SessionKey& key, const CallLimit& limit) {
  if (auto session = known(key)) {
    return session;
  }
  const auto found = look_up(key, limit);
  if (!found) {
    return fail(found.error());
  }
  return found->live ? use(key, *found->live, limit) : SessionHandle();
}

Result<std::optional<wire::ProcessState>> CodeSessions::latest(const SessionKey& key, const CallLimit& limit) {
  auto found = look_up(key, limit);
  if (!found) {
    return fail(found.error());
  }
  return std::move(found->live ? found->live : found->ended);
}

Result<std::optional<std::pair<SessionHandle, std::uint64_t>>> CodeSessions::earlier_cell(const SessionKey& name,
                                                                                          const std::string& key,
                                                                                          const CallLimit& limit) {
  const auto last = latest(name, limit);
  if (!last) {
    return fail(last.error());
  }
  if (!*last) {
    return std::nullopt;
  }
  auto session = handle((*last)->id, name.owner);
  if (const auto read = read_events(session, limit, (*last)->side.total); !read) {
    return fail(read.error());
  }
  const std::uint64_t cell = session->with_track([&](const SessionTrack& track) { return track.cell_with_key(key); });
  return cell > 0 ? std::optional(std::pair(std::move(session), cell)) : std::nullopt;
}

Result<OpenedSession> CodeSessions::open(const SessionStart& start, const CallLimit& limit) {
  const SessionKey key{start.owner, start.session.kind, start.session.name};
  if (auto session = known(key)) {
    return OpenedSession{std::move(session)};
  }
  if (reserve_unlisted(start, Clock::now())) {
    // A list takes long if there are many processes. If the name was used before, this start finds its first session.
    const Clock::time_point began = Clock::now();
    const auto first = launch(start, "", "", limit);
    const bool is_running = first && first->state.running();
    auto opened = is_running ? opened_with(start, *first, began, limit) : fail(ErrorCode::process_ended, "");
    if (!opened || !opened->is_new) {
      add_to_count(start, -1);
    }
    if (is_running) {
      return opened;
    }
  }
  const auto found = look_up(key, limit);
  if (!found) {
    return fail(found.error());
  }
  if (found->live) {
    auto session = use(key, *found->live, limit);
    return session ? Result<OpenedSession>(OpenedSession{std::move(*session)}) : fail(session.error());
  }
  if (start.max_sessions > 0 && found->live_sessions >= start.max_sessions) {
    return fail(too_many(start, limit));
  }
  return this->start(start, found->ended, limit);
}

Result<Snapshot> CodeSessions::launch(const SessionStart& start, const std::string& previous, const std::string& salt,
                                      const CallLimit& limit) {
  // Servers that start the same session at once make the same id, and so share one process.
  const std::string seed =
      sha256_hex(fmt::format("code session\n{}\n{}\n{}\n{}\n{}", start.owner, wire::name_of(start.session.kind),
                             start.session.name, previous, salt));
  auto id = m_processes.new_process_id(limit.stop(), seed.substr(0, k_token_length));
  if (!id) {
    return fail(id.error());
  }
  StartRequest request;
  request.id = std::move(*id);
  request.command = start.label;
  request.cwd = start.cwd;
  request.environment = start.environment;
  request.session = start.session;
  request.owner = start.owner;
  request.rationale = start.rationale;
  request.call = seed.substr(seed.size() - wire::k_digest_length);
  return m_processes.start(request, milliseconds(0), {}, limit);
}

Result<OpenedSession> CodeSessions::opened_with(const SessionStart& start, const Snapshot& started,
                                                Clock::time_point began, const CallLimit& limit) {
  auto session = use({start.owner, start.session.kind, start.session.name}, started.state, limit);
  if (!session) {
    return fail(session.error());
  }
  OpenedSession opened{std::move(*session)};
  opened.is_new = opened.session->last_cell() == 0;  // else another server has started and used it
  opened.number = started.state.number;
  opened.is_warm = started.state.session && started.state.session->is_warm;
  if (opened.is_new) {
    note_start(opened.session, started.state, began);
  }
  return opened;
}

Result<OpenedSession> CodeSessions::start(const SessionStart& start, const std::optional<wire::ProcessState>& previous,
                                          const CallLimit& limit) {
  const SessionKey key{start.owner, start.session.kind, start.session.name};
  std::optional<EndedSession> predecessor;
  std::optional<wire::ProcessState> before = previous;
  std::string salt;
  for (int attempt = 0; attempt < k_max_start_attempts; ++attempt) {
    if (before) {
      bool is_known = false;
      {
        const MutexLock lock(m_mutex);
        is_known = m_known_ends.contains(before->id);
      }
      auto explained = is_known ? fail(ErrorCode::session_lost, "") : explain_end(*before, limit);
      const bool had_state = !is_known && (!explained || explained->cells > 0);
      if (had_state && before->cause == wire::Cause::container) {
        note_end_is_known(before->id);
        return fail(ErrorCode::session_lost,
                    fmt::format("The state of session {} is lost: the container was restarted. The code was not run",
                                key.name));
      }
      predecessor = had_state && explained ? std::optional(std::move(*explained)) : std::nullopt;
    }
    const Clock::time_point began = Clock::now();
    const auto started = launch(start, before ? before->id : "", salt, limit);
    if (!started && started.error().code == ErrorCode::process_expired) {
      salt = salt.empty() ? std::to_string(unix_milliseconds_now() / 60'000) : random_token(k_token_length);
      continue;
    }
    if (!started) {
      return fail(started.error());
    }
    if (started->state.running()) {
      auto opened = opened_with(start, *started, began, limit);
      if (opened) {
        add_to_count(start, opened->is_new ? 1 : 0);
        opened->predecessor = std::move(predecessor);
      }
      return opened;
    }
    const auto session = handle(started->state.id, start.owner);
    if (const auto read = read_events(session, limit, started->state.side.total); !read) {
      return fail(read.error());
    }
    if (const auto error = startup_error(session, started->state, limit)) {
      return fail(*error);
    }
    before = started->state;  // a session that had this name earlier than the list reaches
  }
  return fail(ErrorCode::cannot_start, fmt::format("Session {} ends as soon as it is started", key.name));
}

std::optional<Error> CodeSessions::startup_error(const SessionHandle& session, const wire::ProcessState& state,
                                                 const CallLimit& limit) {
  const auto [too_old, is_ready] = session->with_track([](const SessionTrack& track) {
    return std::pair(track.too_old(), track.ready().has_value() || track.last_cell() > 0);
  });
  if (too_old) {
    return Error{ErrorCode::python_too_old,
                 fmt::format("Python {} is too old; 3.8 or newer is required", printable_line(too_old->version, 40))};
  }
  if (is_ready || state.running()) {
    return std::nullopt;
  }
  const std::uint64_t from = state.err.total - std::min<std::uint64_t>(state.err.total, k_max_shown_output);
  const auto complaint = m_processes.read(state.id, Stream::err, from, k_max_shown_output, limit);
  const std::string text = complaint ? printable_line(to_valid_utf8(complaint->bytes).text, k_max_shown_output) : "";
  return Error{ErrorCode::cannot_start,
               fmt::format("The interpreter ended before it ran the code{}{}", text.empty() ? "" : ": ", text),
               "Check the interpreter with a command, and the memory and disk space of the container"};
}

Error CodeSessions::too_many(const SessionStart& start, const CallLimit& limit) {
  std::string names;
  if (const auto sessions = list(start.owner, start.session.kind, limit)) {
    for (const ListedSession& session : *sessions) {
      names += fmt::format("{}{} (p{}, {})", names.empty() ? ": " : ", ", session.state.session->name,
                           session.state.number, idle_text(session));
    }
  }
  return {ErrorCode::too_many_sessions, fmt::format("There are already {} sessions{}", start.max_sessions, names)};
}

Result<void> CodeSessions::read_events(const SessionHandle& session, const CallLimit& limit,
                                       std::optional<std::uint64_t> known_total) {
  std::uint64_t at = session->next_offset();
  if (known_total && *known_total <= at) {
    return {};
  }
  const bool begins_at_end = at == 0 && known_total.value_or(0) > k_long_stream;
  if (begins_at_end) {
    at = *known_total - k_long_stream / 4;
  }
  const auto read_from = [&](std::uint64_t from) -> Result<void> {
    while (true) {
      const auto slice = m_processes.read(session->id(), Stream::side, from, k_event_read_bytes, limit);
      if (!slice) {
        return fail(slice.error());
      }
      session->add(slice->offset, slice->bytes);
      const auto news = session->take_news(Clock::now());
      if (news.start) {
        m_counts.count_start(news.start->first, news.start->second);
      }
      if (news.ended_cell) {
        m_counts.count_cell(news.ended_cell->first, news.ended_cell->second);
      }
      from = slice->offset + slice->bytes.size();
      if (slice->bytes.empty() || from >= std::max(slice->stream.total, known_total.value_or(0))) {
        return {};
      }
    }
  };
  auto read = read_from(at);
  const bool is_certain = session->with_track([](const SessionTrack& track) { return track.is_certain(); });
  if (read && begins_at_end && !is_certain) {
    session->restart_track();
    read = read_from(0);
  }
  return read;
}

Result<void> CodeSessions::send_bytes(const SessionHandle& session, const std::string& bytes, const std::string& key,
                                      const CallLimit& limit) {
  wire::Once once{key, key, 0, {}};
  auto patience = Deadline::after(k_send_patience);
  while (true) {
    const auto taken = m_control.send_side(session->id(), std::string_view(bytes).substr(once.at), once, limit);
    if (!taken) {
      return fail(taken.error());
    }
    once.at += taken->count;
    if (once.at >= bytes.size()) {
      return {};
    }
    if (taken->count > 0) {
      patience = Deadline::after(k_send_patience);
    } else if (const auto now = m_processes.wait(session->id(), milliseconds(0), {}, limit); !now) {
      return fail(now.error());
    } else if (!now->state.running()) {
      return fail(ErrorCode::process_ended, "The session has ended");
    }
    if (patience.passed() || limit.is_over()) {
      Error error{ErrorCode::keeper_busy, "The session does not read its requests",
                  "Interrupt or end it with control_process"};
      return fail(std::move(error));
    }
    std::this_thread::sleep_for(k_send_interval);
  }
}

Result<void> CodeSessions::refresh(const SessionHandle& session, const CallLimit& limit) {
  const auto now = m_processes.wait(session->id(), milliseconds(0), {}, limit);
  if (!now) {
    return fail(now.error());
  }
  if (const auto read = read_events(session, limit, now->state.side.total); !read) {
    return fail(read.error());
  }
  return now->state.running() ? Result<void>() : fail(ErrorCode::process_ended, "The session has ended");
}

Result<SentCell> CodeSessions::send_cell(const SessionHandle& session, const CellOrder& order, const CallLimit& limit) {
  const auto repeated = [&] {
    return session->with_track([&](const SessionTrack& track) { return track.cell_with_key(order.key); });
  };
  if (const std::uint64_t cell = repeated()) {
    return SentCell{cell, true};
  }
  if (session->is_busy()) {
    const auto current = refresh(session, limit);
    if (const std::uint64_t cell = repeated()) {
      return SentCell{cell, true};
    }
    if (!current) {
      return fail(current.error());
    }
  }
  if (session->is_busy()) {
    return fail(busy_error(session));
  }
  const std::uint64_t number = session->last_cell() + 1;
  session->note_first_line(number, order.first_line);
  session->note_sent_key(order.key);
  const auto sent =
      send_bytes(session, order.request(number), digest_of(fmt::format("{} {}", order.key, number)), limit);
  if (!sent && sent.error().code == ErrorCode::process_ended) {
    // If the connection was lost, the request was sent twice, and the first may have run.
    (void)read_events(session, limit);
    if (const std::uint64_t cell = repeated()) {
      return SentCell{cell, true};
    }
  }
  return sent ? Result<SentCell>(SentCell{number}) : fail(sent.error());
}

Result<SessionEvent> CodeSessions::ask(const SessionHandle& session, std::uint64_t request_id,
                                       const std::string& request, const CallLimit& limit) {
  if (const auto current = refresh(session, limit); !current) {
    return fail(current.error());
  }
  if (session->is_busy()) {
    return fail(busy_error(session));
  }
  const auto rejected = [&] {
    return session->with_track([](const SessionTrack& track) { return track.bad_requests(); });
  };
  const std::uint64_t rejected_before = rejected();
  if (const auto sent = send_bytes(session, request, new_cell_key(), limit); !sent) {
    return fail(sent.error());
  }
  const auto deadline = Deadline::after(k_ask_patience);
  while (true) {
    const auto waited = m_processes.wait(session->id(), deadline.remaining(), {.known_side = session->next_offset()},
                                         limit.capped(deadline.remaining() + k_answer_patience));
    if (!waited) {
      return fail(waited.error());
    }
    if (const auto read = read_events(session, limit, waited->state.side.total); !read) {
      return fail(read.error());
    }
    if (auto answer = session->take_answer(request_id)) {
      return std::move(*answer);
    }
    if (!waited->state.running()) {
      return fail(ErrorCode::process_ended, "The session has ended");
    }
    if (rejected() > rejected_before) {
      return fail(ErrorCode::bad_request, session->with_track([](const SessionTrack& track) {
        return printable_line(track.bad_request(), 200);
      }));
    }
    if (deadline.passed()) {
      return session->is_busy() ? fail(busy_error(session))
                                : fail(ErrorCode::timed_out, "The session does not answer", "Call again, or end it");
    }
  }
}

Result<EndedSession> CodeSessions::explain_end(const wire::ProcessState& state, const CallLimit& limit) {
  const auto session = handle(state.id, state.owner);
  if (const auto read = read_events(session, limit, state.side.total); !read) {
    return fail(read.error());
  }
  auto ended = session->with_track([&](const SessionTrack& track) {
    return EndedSession{state, track.has_reached_idle_limit(), track.last_cell(), track.is_busy()};
  });
  session->restart_track();
  return ended;
}

Result<void> CodeSessions::for_each_cell(const std::string& process,
                                         const std::function<void(const CellRecord& cell)>& use,
                                         const CallLimit& limit) {
  SessionTrack track(use);
  while (true) {
    const auto slice = m_processes.read(process, Stream::side, track.next_offset(), k_event_read_bytes, limit);
    if (!slice) {
      return fail(slice.error());
    }
    if (slice->bytes.empty()) {
      return {};
    }
    track.add(slice->offset, slice->bytes);
  }
}

Result<std::vector<ListedSession>> CodeSessions::list(const std::string& owner, std::optional<wire::CodeKind> kind,
                                                      const CallLimit& limit) {
  const auto all = m_processes.list(owner, 0, limit);
  if (!all) {
    return fail(all.error());
  }
  std::vector<ListedSession> sessions;
  for (const wire::ProcessState& state : all->processes) {
    const auto& label = state.session;
    if (!state.running() || !label || label->name.empty() || (kind && label->kind != *kind)) {
      continue;
    }
    const auto session = handle(state.id, owner);
    if (const auto read = read_events(session, limit, state.side.total); !read) {
      return fail(read.error());
    }
    sessions.push_back({state, session->last_cell(), session->is_busy(), session->first_line_of_running()});
  }
  std::stable_sort(sessions.begin(), sessions.end(), [](const ListedSession& one, const ListedSession& other) {
    return one.state.idle_ms > other.state.idle_ms;
  });
  return sessions;
}

Snapshot limited_to(Snapshot snapshot, const wire::Offsets& output) {
  const auto limit = [](wire::StreamState& stream, std::uint64_t total) {
    stream.total = std::min(stream.total, total);
    stream.head_end = std::min(stream.head_end, stream.total);
    stream.tail_start = std::min(stream.tail_start, stream.total);
  };
  limit(snapshot.state.out, output.first);
  limit(snapshot.state.err, output.second);
  if (snapshot.whole) {
    snapshot.out.resize(std::min<std::size_t>(snapshot.out.size(), output.first));
    snapshot.err.resize(std::min<std::size_t>(snapshot.err.size(), output.second));
  }
  // Nothing follows that could complete a character at the end.
  snapshot.state.phase = wire::Phase::closed;
  return snapshot;
}

std::string new_cell_key() {
  return to_hex(random_bytes(wire::k_digest_length / 2));
}

std::string request_line(const nlohmann::json& request) {
  return json_text(request) + "\n";
}

}  // namespace dockbridge::sandbox
