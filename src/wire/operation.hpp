#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace dockbridge::wire {

/// Requests of the host to the agent, specified in docs/agent-protocol.md.
enum class Operation : std::uint8_t {
  start,
  wait,
  read,
  grep,
  input,
  keys,
  side,
  taken,
  screen,
  resize,
  signal,
  end,
  list,
  line,
  cancel,
  ping,
  file_watch,
  file_read,
  file_bytes,
  file_image,
  file_open,
  file_next,
  file_stage,
  file_abandon,
  file_write,
  file_edit,
  file_edit_set,
  file_undo,
  file_list,
  file_glob,
  file_grep,
};

/// The part of the agent that serves an operation.
enum class ServedBy : std::uint8_t {
  session,  ///< the session
  worker,   ///< a file worker
  search,   ///< a file worker that uses all cores; few run at the same time
  decoder,  ///< a file worker that uses much memory; few run at the same time
};

struct OperationProperties {
  Operation operation = Operation::ping;
  std::string_view name;     ///< `op` in the head of a frame
  bool repeatable = false;   ///< has the same effect twice as once, so it is sent again after a lost connection
  bool cancellable = false;  ///< changes nothing that a cancellation could leave half done
  ServedBy served_by = ServedBy::session;
};

/// All operations, in the order of the enumeration.
std::span<const OperationProperties> operations();
const OperationProperties& properties_of(Operation operation);
inline std::string_view name_of(Operation operation) {
  return properties_of(operation).name;
}
/// nullopt if no operation has this name.
std::optional<Operation> operation_named(std::string_view name);

}  // namespace dockbridge::wire
