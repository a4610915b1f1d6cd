#include "wire/wait_messages.hpp"

#include <algorithm>

namespace dockbridge::wire {

namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view k_input_in_body = "body";
constexpr std::string_view k_input_by_pipe = "pipe";

/// "NAME=value" entries, each ended by NUL.
std::string environment_block(const Environment& environment) {
  std::string block;
  for (const auto& [name, value] : environment) {
    block.append(name).append("=").append(value).push_back('\0');
  }
  return block;
}

Environment environment_from(std::string_view block) {
  Environment environment;
  while (!block.empty()) {
    const std::string_view entry = block.substr(0, block.find('\0'));
    block.remove_prefix(std::min(block.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw BadField("body: an environment entry is not NAME=value");
    }
    environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> process_ids_from(const Field& field) {
  std::vector<std::string> ids;
  for (const Field& id : field.elements(k_max_wait_processes)) {
    ids.push_back(process_id_from(id));
  }
  if (ids.empty()) {
    field.fail_here();
  }
  return ids;
}

}  // namespace

void WaitCondition::visit(Codec& codec) {
  codec.optional("known", known, OffsetsAtMost{UINT64_MAX});
  codec.optional("side", known_side, k_any_number);
  codec.optional("pattern", pattern);
  if (pattern) {
    codec("from", search_from, OffsetsAtMost{UINT64_MAX});
  }
  codec.optional("port", port);
  codec.optional("idleMs", idle);
  if (idle) {
    codec.optional("longestIdleMs", longest_idle);
  }
  codec.optional("input", input);
  codec.optional("answer", answer);
  codec.optional("closed", closed);
}

void WaitTerms::visit(Codec& codec) {
  codec("timeoutMs", timeout);
  codec("carry", carry, k_any_number);
  codec("until", until);
}

void Command::visit(Codec& codec) {
  codec("process", id, process_id_from);
  codec("cwd", cwd);
  codec("owner", owner);
  codec("rationale", rationale);
  codec("maxRuntimeMs", max_runtime, Duration{milliseconds(k_max_time_ms)});
  codec.optional("outputLimit", output_limit, k_any_number);
  codec.optional("nice", nice, AtMost{k_max_nice});
  codec.optional("terminal", terminal);
  codec.optional("side", has_side_channel);
  codec.optional("session", session);
  codec.optional("user", user);
  codec.optional("call", call);

  codec.part("commandBytes", command);
  std::string block = environment_block(environment);
  codec.part("environmentBytes", block);
  std::string_view source = input ? k_input_in_body : k_input_by_pipe;
  codec("stdin", source);
  if (codec.is_reading()) {
    environment = environment_from(block);
    input = source == k_input_in_body ? std::optional<std::string>("") : std::nullopt;
  }
  if (input) {
    codec.body(*input);
  }
}

void StartRequest::visit(Codec& codec) {
  command.visit(codec);
  codec.optional("above", above, AtMost{k_max_process_number});
  wait.visit(codec);
}

void WaitRequest::visit(Codec& codec) {
  codec.optional("owner", owner);
  codec.optional("processes", processes, process_ids_from);
  if (processes.empty()) {
    codec.optional("number", number, AtMost{k_max_process_number});
    if (number) {
      codec.require({"owner"});
    } else {
      codec("process", process, process_id_from);
    }
  }
  wait.visit(codec);
}

void Listener::visit(Codec& codec) {
  codec("pid", pid, AtMost{k_max_pid});
  codec("command", command);
  codec("own", is_own);
  codec.optional("process", process, [](const Field& field) { return field.name(is_process_id); });
  if (!process.empty()) {
    codec("number", number, AtMost{k_max_process_number});
  }
}

void WaitAnswer::visit(Codec& codec) {
  codec("process", state);
  codec("happened", happened);
  codec.optional("searched", searched, OffsetsAtMost{k_max_stream_bytes});
  if (codec.is_reading() || happened == WaitOutcome::pattern) {
    codec.lenient("line", line);
  }
  codec.optional("order", order, write_order_from);
  codec.optional("listener", listener);
  codec("carried", whole);
  if (!whole) {
    return;
  }
  if (!codec.is_reading()) {
    codec.append(out);
    codec.append(err);
    return;
  }
  const std::string_view output = codec.rest();
  if (state.out.total > output.size() || output.size() - state.out.total != state.err.total) {
    throw BadField("carried");
  }
  out = output.substr(0, state.out.total);
  err = output.substr(state.out.total);
}

}  // namespace dockbridge::wire
