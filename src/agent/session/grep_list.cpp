#include "agent/session/grep_list.hpp"

namespace dockbridge::agent {

Result<void> GrepList::add(std::uint64_t request, const wire::GrepRequest& message) {
  const auto record = m_state.read(message.process);
  auto grep = record ? OutputGrep::make(message.query) : fail(record.error());
  if (!grep) {
    return fail(grep.error());
  }
  m_searches.push_back({request, message.process, std::move(*grep)});
  return {};
}

void GrepList::cancel(std::uint64_t request) {
  std::erase_if(m_searches, [&](const Search& it) { return it.request == request; });
}

void GrepList::advance() {
  std::erase_if(m_searches, [this](Search& it) {
    const auto is_done = it.grep.advance(m_state.fd(), it.process);
    if (!is_done) {
      m_replies.send_error(it.request, is_done.error());
      return true;
    }
    if (*is_done) {
      const GrepLines& out = it.grep.out();
      const GrepLines& err = it.grep.err();
      const wire::GrepAnswer answer{out.text(), err.text(), {out.matches(), err.matches()}, {out.shown(), err.shown()}};
      m_replies.send(it.request, answer);
    }
    return *is_done;
  });
}

}  // namespace dockbridge::agent
