#include "wire/output_messages.hpp"

#include <algorithm>

#include "util/json_text.hpp"

namespace dockbridge::wire {

void ReadRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec("stream", stream, [](const Field& field) {
    const auto named = value_named<Stream>(field.text());
    return named.value_or(Stream::out);
  });
  codec("offset", offset, k_any_number);
  codec("max", max, k_any_number);
}

void ReadAnswer::visit(Codec& codec) {
  codec("offset", offset, k_any_number);
  codec("stream", stream);
  codec.body(bytes);
}

ReadAnswer ReadAnswer::from_json(const Field& head, std::string body, const ReadRequest& request) {
  auto answer = wire::from_json<ReadAnswer>(head, std::move(body));
  const Field offset = head.at("offset");
  if (offset.number(std::max(request.offset, k_max_stream_bytes)) < request.offset) {
    offset.fail_here();
  }
  if (answer.bytes.size() > request.max) {
    throw BadField("body");
  }
  return answer;
}

void GrepRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
  codec("pattern", query.pattern);
  codec("ignoreCase", query.ignore_case);
  codec("context", query.context,
        [](const Field& field) { return std::min<std::uint64_t>(field.number(UINT64_MAX), k_max_context); });
  codec("most", query.most, k_any_number);
}

void GrepAnswer::visit(Codec& codec) {
  codec("matches", matches, OffsetsAtMost{k_max_stream_bytes});
  codec("shown", shown, OffsetsAtMost{k_max_stream_bytes});
  codec.part("outBytes", out);
  codec.body(err);
}

void ScreenRequest::visit(Codec& codec) {
  codec("process", process, process_id_from);
}

void ScreenAnswer::visit(Codec& codec) {
  codec("screen", static_cast<ScreenFacts&>(*this));
  codec.body(text);
}

void ListRequest::visit(Codec& codec) {
  codec("owner", owner);
  codec("most", most, k_any_number);
  if (codec.is_reading()) {
    most_finished = most;
  }
  codec.lenient("finished", most_finished, k_any_number);
}

void ListAnswer::visit(Codec& codec) {
  codec("left", left_out, AtMost{k_max_stream_bytes});
  codec.lenient("unreadable", unreadable, AtMost{k_max_stream_bytes});
  if (codec.is_reading()) {
    const nlohmann::json list = object_in_body(codec.rest());
    const Field fields(list);
    Codec(fields, {})("processes", processes);
    if (processes.size() > k_max_listed) {
      throw BadField("processes");
    }
  }
}

bool ListBody::add(const ProcessState& state) {
  const std::string text = json_text(to_json(state));
  m_is_full = m_is_full || m_text.size() + text.size() > k_max_text_body;
  if (!m_is_full) {
    m_text += (m_count++ == 0 ? "" : ",") + text;
  }
  return !m_is_full;
}

}  // namespace dockbridge::wire
