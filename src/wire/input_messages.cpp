#include "wire/input_messages.hpp"

namespace dockbridge::wire {

namespace {

const std::string& digest_from(const Field& field) {
  if (field.text().size() != k_digest_length) {
    field.fail_here();
  }
  return field.text();
}

std::uint64_t signal_from(const Field& field) {
  const std::uint64_t number = field.number(k_max_signal);
  if (number == 0) {
    field.fail_here();
  }
  return number;
}

}  // namespace

void Once::visit(Codec& codec) {
  codec("key", key, digest_from);
  codec("call", call, digest_from);
  codec("at", at, k_any_number);
  codec("seen", seen, OffsetsAtMost{UINT64_MAX});
}

void InputRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec("eof", then_end);
  codec.optional("paste", as_paste);
  codec.optional("once", once);
  codec.body(input);
}

void KeysRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec("keys", keys);
  codec.optional("once", once);
}

void SideRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec.optional("once", once);
  codec.body(bytes);
}

void SignalRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec("signal", number, signal_from);
  codec.optional("once", once);
}

void TakenRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec("once", once);
}

void InputAnswer::Keyed::visit(Codec& codec) {
  codec("before", is_repeated);
  codec("units", units, AtMost{k_max_stream_bytes});
  codec("seen", seen, OffsetsAtMost{k_max_stream_bytes});
}

void InputAnswer::visit(Codec& codec) {
  codec("accepted", accepted, AtMost{k_max_stream_bytes});
  codec.group("before", keyed);
}

InputAnswer InputAnswer::from_json(const Field& head, std::uint64_t max_accepted, bool has_key) {
  auto answer = wire::from_json<InputAnswer>(head);
  (void)head.at("accepted").number(max_accepted);
  if (has_key) {
    (void)head.at("before");
  } else {
    answer.keyed.reset();
  }
  return answer;
}

void ResizeRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec("terminal", size);
}

void EndRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec("cause", cause, [](const Field& field) {
    return field.text() == name_of(Cause::cancelled) ? Cause::cancelled : Cause::terminated;
  });
  codec("graceMs", grace);
}

}  // namespace dockbridge::wire
