#include "tools/shown_cursors.hpp"

#include <algorithm>

namespace dockbridge::tools {

ShownCursors::ShownCursors(std::size_t most, milliseconds patience) : m_most(most), m_patience(patience) {}

/// To be called with the table locked.
std::shared_ptr<ShownCursors::Entry> ShownCursors::entry(const Key& key) {
  auto& list = m_table->latest_first;
  auto& places = m_table->places;
  if (const auto place = places.find(key); place != places.end()) {
    list.splice(list.begin(), list, place->second);
    return list.front().second;
  }
  list.emplace_front(key, std::make_shared<Entry>());
  places.emplace(key, list.begin());
  if (list.size() > m_most) {
    places.erase(list.back().first);
    list.pop_back();
  }
  return list.front().second;
}

Cursor ShownCursors::known(const std::string& client, const std::string& process) {
  MutexLock lock(m_table->mutex);
  const auto known = entry({client, process});
  if (!m_table->changed.wait_for(lock, m_patience, [&] { return known->in_flight <= known->late; })) {
    known->late = known->in_flight;
  }
  return known->cursor;
}

Cursor ShownCursors::known_whole(const std::string& client, const std::string& process) {
  const MutexLock lock(m_table->mutex);
  return entry({client, process})->whole;
}

std::function<void()> ShownCursors::when_delivered(const std::string& client, const std::string& process, Cursor from,
                                                   Cursor to, std::optional<Cursor> gap) {
  const MutexLock lock(m_table->mutex);
  const auto known = entry({client, process});
  ++known->in_flight;
  const std::shared_ptr<void> reply(nullptr, [table = m_table, known](void*) {
    const MutexLock ending(table->mutex);
    --known->in_flight;
    known->late = std::min(known->late, known->in_flight);
    table->changed.notify_all();
  });
  return [table = m_table, known, reply, from, to, whole_to = gap.value_or(to)] {
    const MutexLock delivered(table->mutex);
    const auto advance = [](std::uint64_t& cursor, std::uint64_t begin, std::uint64_t end) {
      cursor = begin <= cursor ? std::max(cursor, end) : cursor;
    };
    advance(known->cursor.out, from.out, to.out);
    advance(known->cursor.err, from.err, to.err);
    advance(known->whole.out, from.out, whole_to.out);
    advance(known->whole.err, from.err, whole_to.err);
  };
}

}  // namespace dockbridge::tools
