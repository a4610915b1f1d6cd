// Whatever an agent sends, the host reads frames of bounded size or breaks off with an error.

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
    const std::size_t piece = std::min<std::size_t>(rest.size(), 1 + rest.size() / 3);  // as a stream would bring it
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
      if (const auto state = wire::process_state_from_json((*frame)->head)) {
        if (wire::process_state_from_json(wire::to_json(*state)).has_value() == false) {
          std::abort();  // what was believed can be told
        }
      }
    }
  }
  return 0;
}
