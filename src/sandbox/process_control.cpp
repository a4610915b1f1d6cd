#include "sandbox/process_control.hpp"

#include <utility>

namespace dockbridge::sandbox {

template <typename Request>
Result<Taken> ProcessControl::send(const Request& request, std::size_t max, const CallLimit& limit) {
  const auto frame = m_calls.send(request, k_answer_patience, limit);
  if (!frame) {
    return fail(frame.error());
  }
  const auto answer = m_calls.read(*frame, [&](const wire::Field& head) {
    return wire::InputAnswer::from_json(head, max, request.once.has_value());
  });
  if (!answer) {
    return fail(answer.error());
  }
  const bool is_repeated = answer->keyed && answer->keyed->is_repeated;
  return Taken{answer->accepted, is_repeated ? std::optional(answer->keyed->seen) : std::nullopt};
}

template <typename MakeRequest>
Result<Taken> ProcessControl::send_pieces(std::string_view bytes, std::optional<Once> once, const MakeRequest& request,
                                          const CallLimit& limit) {
  Taken all;
  do {
    const auto chunk = bytes.substr(0, wire::k_input_piece_bytes);
    const auto taken = send(request(chunk, once, chunk.size() == bytes.size()), chunk.size(), limit);
    if (!taken && taken.error().code == ErrorCode::keeper_busy && all.count > 0) {
      break;  // the result reports the accepted bytes
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

Result<Taken> ProcessControl::send_input(const std::string& process, std::string_view bytes, bool then_end,
                                         std::optional<Once> once, const CallLimit& limit, bool as_paste) {
  const auto request = [&](std::string_view chunk, const std::optional<Once>& step, bool is_last) {
    return wire::InputRequest{process, then_end && is_last, as_paste, step, chunk};
  };
  return send_pieces(bytes, std::move(once), request, limit);
}

Result<Taken> ProcessControl::send_side(const std::string& process, std::string_view bytes, std::optional<Once> once,
                                        const CallLimit& limit) {
  const auto request = [&](std::string_view chunk, const std::optional<Once>& step, bool) {
    return wire::SideRequest{process, step, chunk};
  };
  return send_pieces(bytes, std::move(once), request, limit);
}

Result<Taken> ProcessControl::press_keys(const std::string& process, const std::vector<std::string>& keys,
                                         const std::optional<Once>& once, const CallLimit& limit) {
  return send(wire::KeysRequest{process, keys, once}, keys.size(), limit);
}

Result<Taken> ProcessControl::signal(const std::string& process, int number, const Once& once, const CallLimit& limit) {
  return send(wire::SignalRequest{process, number, once}, 1, limit);
}

Result<std::optional<Taken>> ProcessControl::taken(const std::string& process, const Once& once,
                                                   const CallLimit& limit) {
  const wire::TakenRequest request{process, once};
  auto frame = m_calls.send(request, k_answer_patience, limit);
  if (!frame && frame.error().code == ErrorCode::process_ended) {
    frame = m_calls.send(request, k_answer_patience, limit);  // retry: its keeper ended before it replied
  }
  if (!frame) {
    return fail(frame.error());
  }
  const auto answer = m_calls.read(*frame, [](const wire::Field& head) {
    return wire::InputAnswer::from_json(head, wire::k_max_stream_bytes, true);
  });
  if (!answer) {
    return fail(answer.error());
  }
  const auto& [is_repeated, units, seen] = *answer->keyed;
  return is_repeated ? std::optional(Taken{units, seen}) : std::nullopt;
}

Result<void> ProcessControl::resize(const std::string& process, wire::TerminalSize size, const CallLimit& limit) {
  return order(wire::ResizeRequest{process, size}, limit);
}

Result<void> ProcessControl::signal(const std::string& process, int number, const CallLimit& limit) {
  return order(wire::SignalRequest{process, number}, limit);
}

Result<void> ProcessControl::end(const std::string& process, wire::Cause cause, milliseconds grace,
                                 const CallLimit& limit) {
  return order(wire::EndRequest{process, cause, grace}, limit);
}

template <typename Request>
Result<void> ProcessControl::order(const Request& request, const CallLimit& limit) {
  const auto answer = m_calls.send(request, k_answer_patience, limit);
  return answer ? Result<void>() : fail(answer.error());
}

}  // namespace dockbridge::sandbox
