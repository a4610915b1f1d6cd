#pragma once

#include <cstdint>
#include <string_view>

#include "wire/terminal.hpp"

namespace dockbridge::agent {

/// Serves the keeper on stdin until that is closed. Stdout is the directory of the file `name`. If an order takes too
/// long, an alarm ends the process, and the keeper starts another. `shown` is the number of bytes that earlier screen
/// processes of the terminal have received.
int serve_as_screen(const char* name, wire::TerminalSize size, std::uint64_t shown);

}  // namespace dockbridge::agent
