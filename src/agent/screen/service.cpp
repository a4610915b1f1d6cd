#include "agent/screen/service.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>

#include "agent/control/packets.hpp"
#include "agent/control/screen_packets.hpp"
#include "agent/screen/emulator.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr unsigned k_max_order_seconds = 10;

void press_all(Emulator& emulator, std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    if (name == k_paste_begins || name == k_paste_ends) {
      emulator.mark_paste(name == k_paste_begins);
    } else if (const auto key = wire::parse_key(name)) {
      emulator.press(*key);
    }
  }
}

void execute(Emulator& emulator, const ControlPacket& packet, const char* name) {
  switch (static_cast<ScreenOrder>(packet.header.type)) {
    case ScreenOrder::show:
      emulator.show(packet.payload);
      return;
    case ScreenOrder::press:
      press_all(emulator, packet.payload);
      return;
    case ScreenOrder::resize:
      emulator.resize(unpacked_size(packet.header.value));
      return;
    case ScreenOrder::store:
      // If the disk is full, readers get an older screen, or an error if there is none.
      (void)replace_file_at(STDOUT_FILENO, name, emulator.screen());
      send_control(STDIN_FILENO, static_cast<std::uint8_t>(ScreenReport::stored), 0);
      return;
  }
}

/// Blocks until it is sent, because the keeper delays all text behind the keys until it receives this.
void send_pressed(std::string_view typed) {
  while (!send_control(STDIN_FILENO, static_cast<std::uint8_t>(ScreenReport::pressed), 0, typed) && errno == EAGAIN) {
    pollfd polled{STDIN_FILENO, POLLOUT, 0};
    ::poll(&polled, 1, -1);
  }
}

}  // namespace

int serve_as_screen(const char* name, wire::TerminalSize size, std::uint64_t shown) {
  ::setsid();
  ::prctl(PR_SET_NAME, "dockbridge-scr");
  // It may crash, and a core file would be of no use.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  Emulator emulator(size, shown);
  while (true) {
    pollfd polled{STDIN_FILENO, POLLIN, 0};
    ::poll(&polled, 1, -1);
    ControlPacket packet;
    const Received received = receive_control(STDIN_FILENO, packet);
    if (received == Received::hangup) {
      return 0;
    }
    if (received == Received::nothing) {
      continue;
    }
    ::alarm(k_max_order_seconds);
    execute(emulator, packet, name);
    const std::string typed = emulator.take_typed().substr(0, k_max_control_payload);
    if (packet.header.type == static_cast<std::uint8_t>(ScreenOrder::press)) {
      send_pressed(typed);
    } else if (!typed.empty()) {
      // Dropped if the keeper does not read them: its program sends queries and never reads the replies.
      send_control(STDIN_FILENO, static_cast<std::uint8_t>(ScreenReport::typed), 0, typed);
    }
    ::alarm(0);
  }
}

}  // namespace dockbridge::agent
