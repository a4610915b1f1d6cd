#include "sandbox/file_calls.hpp"

#include <fmt/format.h>

#include "sandbox/agent_link.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::sandbox {

namespace {

constexpr std::size_t k_max_shown_path = 500;
constexpr std::size_t k_max_shown_revision = 40;

}  // namespace

std::optional<Error> unknown_outcome(const Error& error) {
  if (!error.outcome_unknown && error.code != ErrorCode::worker_gone) {
    return std::nullopt;
  }
  Error unknown = error;
  unknown.outcome_unknown = true;
  return unknown;
}

Error malformed(const char* field) {
  return {ErrorCode::protocol_violation, std::string("Malformed message: ") + field};
}

Result<wire::Frame> FileCalls::ask(nlohmann::json head, std::string_view body, bool repeatable, milliseconds patience,
                                   const CallLimit& limit) {
  wire::set_root(head, m_root);
  auto answer = m_link.ask(head, body, patience, limit);
  if (!answer && answer.error().code == ErrorCode::connection_lost && repeatable) {
    answer = m_link.ask(std::move(head), body, patience, limit);
  }
  return answer;
}

void FileCalls::abandon(const std::string& token) {
  m_link.post(wire::to_json(wire::FileAbandonRequest{token}));
}

tl::unexpected<Error> FileCalls::reject(const Error& violation) {
  return m_link.drop_session(violation);
}

void FileCalls::remember(const std::string& owner, const std::string& path, const std::string& revision) {
  m_revisions.remember(owner, path, revision);
}

Result<wire::ChangedFile> FileCalls::concluded(const wire::ChangeRequest& request, Result<wire::ChangedFile> changed) {
  if (changed) {
    remember(request.owner, request.path, changed->revision);
    return changed;
  }
  if (const auto error = unknown_outcome(changed.error())) {
    return fail(error->with_effect(fmt::format("the change to {} may have been made, or may still be made",
                                               printable_line(request.path, k_max_shown_path)),
                                   "Read the file to check" + revision_hint(request)));
  }
  return changed;
}

std::string FileCalls::revision_hint(const wire::ChangeRequest& request) {
  if (request.expected_revision) {
    return "; its revision before the change was " + printable_line(*request.expected_revision, k_max_shown_revision);
  }
  const std::string seen = m_revisions.find(request.owner, request.path);
  return seen.empty() ? "" : "; the last revision you saw was " + seen.substr(0, wire::k_short_digits);
}

}  // namespace dockbridge::sandbox
