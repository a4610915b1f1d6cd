#include "sandbox/answers.hpp"
#include "sandbox/sandbox.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

/// What one request may carry, with room for a key.
constexpr std::size_t k_input_chunk_bytes = 31 * 1024;

json to_json(const Once& once) {
  return {{"key", once.key}, {"call", once.call}, {"at", once.at}, {"seen", once.seen}};
}

/// What the agent says of an earlier call with the same key.
struct Earlier {
  bool there = false;
  Offsets seen;
};

Result<Earlier> earlier_in(const json& head) {
  const json before = head.value("before", json());
  const auto seen = offsets_from(head.value("seen", json()));
  return before.is_boolean() && seen ? Result<Earlier>(Earlier{before.get<bool>(), *seen}) : fail(violation());
}

}  // namespace

Result<Taken> Sandbox::give(const std::string& process, json head, std::string_view body, std::size_t most,
                            const std::optional<Once>& once, const CallLimit& limit) {
  if (once) {
    head["once"] = to_json(*once);
  }
  const auto answer = call_process(process, std::move(head), body, k_answer_patience, limit);
  if (!answer) {
    return fail(answer.error());
  }
  const auto accepted = answer->head.find("accepted");
  if (accepted == answer->head.end() || !accepted->is_number_unsigned() || *accepted > most) {
    return drop_session(violation());
  }
  Taken taken{accepted->get<std::size_t>(), std::nullopt};
  if (once) {
    const auto earlier = earlier_in(answer->head);
    if (!earlier) {
      return drop_session(earlier.error());
    }
    taken.earlier = earlier->there ? std::optional(earlier->seen) : std::nullopt;
  }
  return taken;
}

Result<Taken> Sandbox::send_input(const std::string& process, std::string_view bytes, bool then_end,
                                  std::optional<Once> once, const CallLimit& limit, bool as_paste) {
  Taken all;
  do {
    const auto chunk = bytes.substr(0, k_input_chunk_bytes);
    const bool last = chunk.size() == bytes.size();
    json head = {{"op", "input"}, {"eof", then_end && last}};
    if (as_paste) {
      head["paste"] = true;
    }
    const auto taken = give(process, std::move(head), chunk, chunk.size(), once, limit);
    if (!taken && taken.error().code == ErrorCode::keeper_busy && all.count > 0) {
      break;  // the rest was not taken, and the caller is told how much was
    }
    if (!taken) {
      return fail(taken.error());
    }
    all.count += taken->count;
    all.earlier = all.earlier ? all.earlier : taken->earlier;
    if (taken->count < chunk.size()) {
      break;
    }
    bytes.remove_prefix(chunk.size());
    if (once) {
      once->at += chunk.size();
    }
  } while (!bytes.empty());
  return all;
}

Result<Taken> Sandbox::press_keys(const std::string& process, const std::vector<std::string>& keys,
                                  const std::optional<Once>& once, const CallLimit& limit) {
  return give(process, {{"op", "keys"}, {"keys", keys}}, {}, keys.size(), once, limit);
}

Result<Taken> Sandbox::signal(const std::string& process, int number, const Once& once, const CallLimit& limit) {
  return give(process, {{"op", "signal"}, {"signal", number}}, {}, 1, once, limit);
}

Result<std::optional<Taken>> Sandbox::taken(const std::string& process, const Once& once, const CallLimit& limit) {
  const json head = {{"op", "taken"}, {"once", to_json(once)}};
  auto answer = call_process(process, head, {}, k_answer_patience, limit);
  if (!answer && answer.error().code == ErrorCode::process_ended) {
    answer = call_process(process, head, {}, k_answer_patience, limit);  // retry: its keeper ended before it replied
  }
  if (!answer) {
    return fail(answer.error());
  }
  const json units = answer->head.value("units", json());
  const auto earlier = earlier_in(answer->head);
  if (!earlier || !units.is_number_unsigned() || units.get<std::uint64_t>() > wire::k_max_stream_bytes) {
    return drop_session(violation());
  }
  return earlier->there ? std::optional(Taken{units.get<std::size_t>(), earlier->seen}) : std::nullopt;
}

}  // namespace dockbridge::sandbox
