#pragma once

#include <string_view>

namespace dockbridge::agent {

/// Whether the driver of a code session waits for a request, by the end of its stream `side`. False if that is unknown.
/// The text may begin at any byte of the stream.
bool is_driver_idle(std::string_view end_of_stream);

}  // namespace dockbridge::agent
