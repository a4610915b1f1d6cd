#pragma once

#include <string>

namespace dockbridge::mcp::http {

/// Whether this is the text of a loopback address: 127.0.0.0/8, ::1, or an IPv4 one mapped into IPv6. A host name never
/// is, whatever it begins with, because it can resolve to any address.
bool is_loopback(const std::string& address);

}  // namespace dockbridge::mcp::http
