#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "error/error.hpp"
#include "wire/codec.hpp"
#include "wire/route.hpp"

namespace dockbridge::agent {

/// Sends replies to the host. Each request gets exactly one reply, or none if the host cancels it.
class Replies {
 public:
  Replies() = default;
  Replies(const Replies&) = delete;
  Replies& operator=(const Replies&) = delete;
  virtual ~Replies() = default;

  void send(std::uint64_t request, nlohmann::json head, std::string_view body = {}) {
    wire::set_id(head, request);
    send_frame(head, body);
  }
  template <wire::Message T>
  void send(std::uint64_t request, const T& answer) {
    auto message = wire::outgoing(answer);
    send(request, std::move(message.head), message.body());
  }
  void send_error(std::uint64_t request, const Error& error) { send(request, wire::error_head(error)); }
  /// Sends a reply that is already a frame.
  virtual void forward(std::string_view frame) = 0;

 private:
  virtual void send_frame(const nlohmann::json& head, std::string_view body) = 0;
};

}  // namespace dockbridge::agent
