#include "sandbox/process_calls.hpp"

#include <fmt/format.h>

#include <charconv>

#include "sandbox/agent_link.hpp"
#include "util/text.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::sandbox {

std::optional<std::uint32_t> generation_of(const std::string& process) {
  if (!wire::is_process_id(process)) {
    return std::nullopt;
  }
  std::uint32_t generation = 0;
  const char* begin = process.data() + std::string_view("proc_").size();
  const auto parsed = std::from_chars(begin, process.data() + process.size(), generation);
  return parsed.ec == std::errc() && *parsed.ptr == '_' ? std::optional(generation) : std::nullopt;
}

Result<wire::Frame> ProcessCalls::send(const std::string& process, const nlohmann::json& head, std::string_view body,
                                       milliseconds patience, bool repeatable, const CallLimit& limit) const {
  if (!generation_of(process)) {
    return fail(ErrorCode::bad_process_id, fmt::format("Not a process id: {}", printable_line(process, 80)));
  }
  auto answer = m_link.call_again(head, body, patience, repeatable, limit);
  return answer || answer.error().code != ErrorCode::no_such_process ? std::move(answer)
                                                                     : fail(unknown_process(process, limit));
}

tl::unexpected<Error> ProcessCalls::reject(Error error) const {
  return m_link.drop_session(std::move(error));
}

Error ProcessCalls::unknown_process(const std::string& process, const CallLimit& limit) const {
  const auto current = m_link.session(limit.stop());
  if (current && current->run.generation() != generation_of(process)) {
    return {ErrorCode::process_gone,
            fmt::format("Process not found: {}. The container was restarted; its processes are gone.", process)};
  }
  return {ErrorCode::no_such_process, "Process not found: " + process};
}

}  // namespace dockbridge::sandbox
