#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"

namespace dockbridge::tools {

/// The longest wait for clients of one name. A name that ends with '*' is a prefix.
struct ClientWait {
  std::string name;
  milliseconds wait;
};

/// The wait that the first matching row states; nullopt if none matches.
std::optional<milliseconds> find_client_wait(const std::vector<ClientWait>& rows, std::string_view client_name);

/// Clients that stop waiting after a fixed time, even if progress is reported. Each row is shorter than that time, so
/// that the client's model gets the reply with the process id.
const std::vector<ClientWait>& known_client_waits();

/// Whether the `reason` of a cancellation says that the client's own timeout has passed. Such a cancellation does not
/// end the command.
bool is_client_timeout(std::string_view reason);

}  // namespace dockbridge::tools
