#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/process_calls.hpp"
#include "util/clock.hpp"
#include "wire/input_messages.hpp"
#include "wire/process_state.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::sandbox {

using wire::Offsets;
using wire::Once;

/// Time from SIGTERM to SIGKILL for a command whose call was cancelled.
inline constexpr milliseconds k_cancel_grace{2000};

/// Units that a process took.
struct Taken {
  std::size_t count = 0;           ///< bytes, keys or signals
  std::optional<Offsets> earlier;  ///< set if an earlier call sent them: the output that it had seen
};

/// Sends input, keys and signals to processes, and ends them. Any thread may call.
class ProcessControl {
 public:
  explicit ProcessControl(AgentLink& link) : m_calls(link) {}

  /// Returns how many bytes were accepted: fewer than given if the process does not read its input. `as_paste`: on a
  /// terminal, marks them as a paste if the program has requested that.
  Result<Taken> send_input(const std::string& process, std::string_view bytes, bool then_end,
                           std::optional<Once> once = {}, const CallLimit& limit = {}, bool as_paste = false);
  /// Sends bytes to its side channel. Returns how many were accepted: fewer than given if the process does not read
  /// them, 0 if it has no side channel.
  Result<Taken> send_side(const std::string& process, std::string_view bytes, std::optional<Once> once = {},
                          const CallLimit& limit = {});
  /// Types keys (see wire/terminal.hpp) on its terminal. Returns how many were accepted: 0 without a terminal.
  Result<Taken> press_keys(const std::string& process, const std::vector<std::string>& keys,
                           const std::optional<Once>& once = {}, const CallLimit& limit = {});
  /// Units that the process took under this key, also after its end; nullopt if it took none.
  Result<std::optional<Taken>> taken(const std::string& process, const Once& once, const CallLimit& limit = {});
  Result<void> resize(const std::string& process, wire::TerminalSize size, const CallLimit& limit = {});
  /// Sends a signal to every process of the tree.
  Result<void> signal(const std::string& process, int number, const CallLimit& limit = {});
  Result<Taken> signal(const std::string& process, int number, const Once& once, const CallLimit& limit = {});
  /// Sends TERM to the whole tree, and KILL after `grace`.
  Result<void> end(const std::string& process, wire::Cause cause, milliseconds grace, const CallLimit& limit = {});

 private:
  /// Sends at most `max` bytes, keys or signals to a process.
  template <typename Request>
  Result<Taken> send(const Request& request, std::size_t max, const CallLimit& limit);
  /// Sends bytes in requests of at most k_input_piece_bytes. `request` makes one of them, from its bytes, its `once`
  /// and whether it is the last.
  template <typename MakeRequest>
  Result<Taken> send_pieces(std::string_view bytes, std::optional<Once> once, const MakeRequest& request,
                            const CallLimit& limit);
  /// Sends a request whose answer is empty.
  template <typename Request>
  Result<void> order(const Request& request, const CallLimit& limit);

  ProcessCalls m_calls;
};

}  // namespace dockbridge::sandbox
