#include "wire/output_messages.hpp"

#include <algorithm>

#include "util/json_text.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

constexpr std::string_view k_out = "out";
constexpr std::string_view k_err = "err";
constexpr int k_list_depth = 8;

}  // namespace

json to_json(const ReadRequest& request) {
  return {{"op", name_of(ReadRequest::k_operation)},
          {"process", request.process},
          {"stream", request.stream == Stream::err ? k_err : k_out},
          {"offset", request.offset},
          {"max", request.max}};
}

ReadRequest ReadRequest::from_json(const Field& head) {
  return {process_id_from(head.at("process")), head.at("stream").text() == k_err ? Stream::err : Stream::out,
          head.at("offset").number(UINT64_MAX), head.at("max").number(UINT64_MAX)};
}

json to_json(const ReadAnswer& answer) {
  return {{"offset", answer.offset}, {"stream", to_json(answer.stream)}};
}

ReadAnswer ReadAnswer::from_json(const Field& head, std::string body, const ReadRequest& request) {
  const Field offset = head.at("offset");
  ReadAnswer answer{offset.number(std::max(request.offset, k_max_stream_bytes)), std::move(body),
                    StreamState::from_json(head.at("stream"))};
  if (answer.offset < request.offset) {
    offset.fail_here();
  }
  if (answer.bytes.size() > request.max) {
    throw BadField("body");
  }
  return answer;
}

json to_json(const GrepRequest& request) {
  return {{"op", name_of(GrepRequest::k_operation)}, {"process", request.process},
          {"pattern", request.query.pattern},        {"ignoreCase", request.query.ignore_case},
          {"context", request.query.context},        {"most", request.query.most}};
}

GrepRequest GrepRequest::from_json(const Field& head) {
  return {process_id_from(head.at("process")),
          {head.at("pattern").text(), head.at("ignoreCase").flag(),
           std::min<std::size_t>(head.at("context").number(UINT64_MAX), k_max_context),
           head.at("most").number(UINT64_MAX)}};
}

json to_json(const GrepAnswer& answer) {
  return {{"matches", answer.matches}, {"shown", answer.shown}, {"outBytes", answer.out.size()}};
}

GrepAnswer GrepAnswer::from_json(const Field& head, std::string_view body) {
  const auto out_bytes = head.at("outBytes").number(body.size());
  return {std::string(body.substr(0, out_bytes)), std::string(body.substr(out_bytes)),
          offsets_from(head.at("matches"), k_max_stream_bytes), offsets_from(head.at("shown"), k_max_stream_bytes)};
}

json to_json(const ScreenRequest& request) {
  return {{"op", name_of(ScreenRequest::k_operation)}, {"process", request.process}};
}

ScreenRequest ScreenRequest::from_json(const Field& head) {
  return {process_id_from(head.at("process"))};
}

json to_json(const ScreenAnswer& answer) {
  return {{"screen", to_json(static_cast<const ScreenFacts&>(answer))}};
}

ScreenAnswer ScreenAnswer::from_json(const Field& head, std::string body) {
  return {ScreenFacts::from_json(head.at("screen")), std::move(body)};
}

json to_json(const ListRequest& request) {
  return {{"op", name_of(ListRequest::k_operation)},
          {"owner", request.owner},
          {"most", request.most},
          {"finished", request.most_finished}};
}

ListRequest ListRequest::from_json(const Field& head) {
  ListRequest request;
  request.owner = head.at("owner").text();
  request.most = head.at("most").number(UINT64_MAX);
  const auto finished = head.find("finished");
  request.most_finished = finished ? finished->number(UINT64_MAX) : request.most;
  return request;
}

json to_json(const ListAnswer& answer) {
  return {{"left", answer.left_out}, {"unreadable", answer.unreadable}};
}

ListAnswer ListAnswer::from_json(const Field& head, std::string_view body) {
  ListAnswer answer;
  answer.left_out = head.at("left").number(k_max_stream_bytes);
  if (const auto unreadable = head.find("unreadable")) {
    answer.unreadable = unreadable->number(k_max_stream_bytes);
  }
  const auto list = parse_bounded(body, k_list_depth);
  if (!list) {
    throw BadField("body");
  }
  const Field fields(*list);
  const Field processes = fields.at("processes");
  for (const Field& state : processes.elements(k_max_listed)) {
    answer.processes.push_back(ProcessState::from_json(state));
  }
  return answer;
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
