#include "wire/input_messages.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

template <typename Request>
json head_of(const Request& request) {
  json head = {{"op", name_of(Request::k_operation)}, {"process", request.process}};
  if constexpr (requires { request.once.has_value(); }) {
    if (request.once) {
      head["once"] = to_json(*request.once);
    }
  }
  return head;
}

std::optional<Once> optional_once(const Field& head) {
  const auto once = head.find("once");
  return once ? std::optional(Once::from_json(*once)) : std::nullopt;
}

const std::string& digest_from(const Field& field) {
  if (field.text().size() != k_digest_length) {
    field.fail_here();
  }
  return field.text();
}

}  // namespace

json to_json(const Once& once) {
  return {{"key", once.key}, {"call", once.call}, {"at", once.at}, {"seen", once.seen}};
}

Once Once::from_json(const Field& field) {
  return {digest_from(field.at("key")), digest_from(field.at("call")), field.at("at").number(UINT64_MAX),
          offsets_from(field.at("seen"), UINT64_MAX)};
}

json to_json(const InputRequest& request) {
  json head = head_of(request);
  head["eof"] = request.then_end;
  if (request.as_paste) {
    head["paste"] = true;
  }
  return head;
}

InputRequest InputRequest::from_json(const Field& head) {
  const auto paste = head.find("paste");
  return {process_id_from(head.at("process")), head.at("eof").flag(), paste && paste->flag(), optional_once(head)};
}

json to_json(const KeysRequest& request) {
  json head = head_of(request);
  head["keys"] = request.keys;
  return head;
}

KeysRequest KeysRequest::from_json(const Field& head) {
  const Field keys = head.at("keys");
  return {process_id_from(head.at("process")), keys.texts(), optional_once(head)};
}

json to_json(const SignalRequest& request) {
  json head = head_of(request);
  head["signal"] = request.number;
  return head;
}

SignalRequest SignalRequest::from_json(const Field& head) {
  const Field number = head.at("signal");
  if (number.number(k_max_signal) == 0) {
    number.fail_here();
  }
  return {process_id_from(head.at("process")), static_cast<int>(number.number(k_max_signal)), optional_once(head)};
}

json to_json(const TakenRequest& request) {
  json head = head_of(request);
  head["once"] = to_json(request.once);
  return head;
}

TakenRequest TakenRequest::from_json(const Field& head) {
  return {process_id_from(head.at("process")), Once::from_json(head.at("once"))};
}

json to_json(const InputAnswer& answer) {
  json head = {{"accepted", answer.accepted}};
  if (answer.keyed) {
    head["before"] = answer.keyed->is_repeated;
    head["units"] = answer.keyed->units;
    head["seen"] = answer.keyed->seen;
  }
  return head;
}

InputAnswer InputAnswer::from_json(const Field& head, std::uint64_t max_accepted, bool has_key) {
  InputAnswer answer{head.at("accepted").number(max_accepted)};
  if (has_key) {
    answer.keyed = Keyed{head.at("before").flag(), head.at("units").number(k_max_stream_bytes),
                         offsets_from(head.at("seen"), k_max_stream_bytes)};
  }
  return answer;
}

json to_json(const ResizeRequest& request) {
  json head = head_of(request);
  head["terminal"] = to_json(request.size);
  return head;
}

ResizeRequest ResizeRequest::from_json(const Field& head) {
  return {process_id_from(head.at("process")), terminal_size_from(head.at("terminal"))};
}

json to_json(const EndRequest& request) {
  json head = head_of(request);
  head["cause"] = name_of(request.cause);
  head["graceMs"] = duration_to_json(request.grace);
  return head;
}

EndRequest EndRequest::from_json(const Field& head) {
  const bool is_cancelled = head.at("cause").text() == name_of(Cause::cancelled);
  return {process_id_from(head.at("process")), is_cancelled ? Cause::cancelled : Cause::terminated,
          duration_from(head.at("graceMs"))};
}

}  // namespace dockbridge::wire
