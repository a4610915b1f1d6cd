#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tools/output.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::tools {

/// The output of each process that each client has been shown. Only delivered replies count. Holds a bounded number of
/// clients and processes, and drops the least recently used ones; a client that was dropped is shown the output again.
/// Any thread may call.
class ShownCursors {
 public:
  /// `patience`: longest wait of `known` for a reply that is being sent.
  explicit ShownCursors(std::size_t most = 4096, milliseconds patience = milliseconds(200));

  /// The end of the output of both streams, from their start, that the client was shown.
  ///
  /// A client may call again before the server knows that its last reply was delivered. So replies about this process
  /// that are being sent are waited for, but each only once: a client that disconnected delays no other call for long.
  Cursor known(const std::string& client, const std::string& process);

  /// The end of the output that the client was shown without gaps. Not after `known`.
  Cursor known_whole(const std::string& client, const std::string& process);

  /// For ToolResult::on_delivered, of a reply that shows the output from `from` to `to`, all of it or up to the gap
  /// that begins at `gap`. In a stream that has output before `from` which the client was not shown, the cursor stays.
  std::function<void()> when_delivered(const std::string& client, const std::string& process, Cursor from, Cursor to,
                                       std::optional<Cursor> gap = std::nullopt);

 private:
  struct Entry {
    Cursor cursor{};
    Cursor whole{};
    int in_flight = 0;  // replies still being sent
    int late = 0;       // of those, the ones that are not waited for any more
  };
  using Key = std::pair<std::string, std::string>;
  /// Replies may outlive the tools.
  struct Table {
    /// Also held to use an entry. The analysis cannot check that: a reply refers to its entry after the list may have
    /// dropped it, so an entry cannot name its table.
    Mutex mutex;
    std::condition_variable changed;
    std::list<std::pair<Key, std::shared_ptr<Entry>>> latest_first GUARDED_BY(mutex);
    std::map<Key, decltype(latest_first)::iterator> places GUARDED_BY(mutex);
  };
  std::shared_ptr<Entry> entry(const Key& key) REQUIRES(m_table->mutex);

  const std::size_t m_most;
  const milliseconds m_patience;
  const std::shared_ptr<Table> m_table = std::make_shared<Table>();
};

}  // namespace dockbridge::tools
