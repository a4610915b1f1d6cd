// Reads arbitrary bytes as the stream of an agent. The reader returns frames of bounded size, or an error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/frame.hpp"
#include "wire/process_state.hpp"

using namespace dockbridge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  wire::FrameReader reader(wire::k_max_body_to_host);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::size_t piece = std::min<std::size_t>(rest.size(), 1 + rest.size() / 3);  // as pieces of a stream
    reader.feed(rest.substr(0, piece));
    rest.remove_prefix(piece);
    while (true) {
      const auto frame = reader.next();
      if (!frame) {
        return 0;
      }
      if (!*frame) {
        break;
      }
      if (!(*frame)->head.is_object() || (*frame)->body.size() > wire::k_max_body_to_host) {
        std::abort();
      }
      const auto state_in = [](const nlohmann::json& head) {
        return wire::message_from<wire::ProcessState>(head, ErrorCode::protocol_violation);
      };
      if (const auto state = state_in((*frame)->head); state && !state_in(wire::to_json(*state))) {
        std::abort();  // an accepted state is rejected after a round trip
      }
    }
  }
  return 0;
}
