#include "wire/operation.hpp"

#include <algorithm>
#include <array>

namespace dockbridge::wire {

namespace {

constexpr bool k_once = false;  // not repeatable
constexpr bool k_repeatable = true;
constexpr bool k_completes = false;  // not cancellable
constexpr bool k_cancellable = true;

using enum Operation;
using enum ServedBy;

constexpr std::array k_operations = {
    // The host looks up the process by its id before it repeats a start.
    OperationProperties{start, "start", k_once, k_cancellable, session},
    OperationProperties{Operation::wait, "wait", k_repeatable, k_cancellable, session},
    OperationProperties{read, "read", k_repeatable, k_completes, session},
    OperationProperties{grep, "grep", k_repeatable, k_cancellable, session},
    // With `once`, the process takes each of these only once, and the host may repeat it.
    OperationProperties{input, "input", k_once, k_completes, session},
    OperationProperties{keys, "keys", k_once, k_completes, session},
    OperationProperties{side, "side", k_once, k_completes, session},
    OperationProperties{taken, "taken", k_repeatable, k_completes, session},
    OperationProperties{screen, "screen", k_repeatable, k_completes, session},
    OperationProperties{resize, "resize", k_repeatable, k_completes, session},
    OperationProperties{Operation::signal, "signal", k_once, k_completes, session},
    OperationProperties{end, "end", k_repeatable, k_completes, session},
    OperationProperties{list, "list", k_repeatable, k_completes, session},
    OperationProperties{line, "line", k_once, k_completes, session},
    OperationProperties{cancel, "cancel", k_once, k_completes, session},
    OperationProperties{ping, "ping", k_once, k_completes, session},
    OperationProperties{file_watch, "file.watch", k_repeatable, k_cancellable, session},
    OperationProperties{file_read, "file.read", k_repeatable, k_completes, worker},
    OperationProperties{file_bytes, "file.bytes", k_repeatable, k_completes, worker},
    OperationProperties{file_image, "file.image", k_repeatable, k_cancellable, decoder},
    OperationProperties{file_open, "file.open", k_repeatable, k_cancellable, worker},
    OperationProperties{file_next, "file.next", k_once, k_cancellable, worker},
    OperationProperties{file_stage, "file.stage", k_once, k_completes, worker},
    OperationProperties{file_abandon, "file.abandon", k_once, k_completes, worker},
    OperationProperties{file_write, "file.write", k_once, k_completes, worker},
    OperationProperties{file_edit, "file.edit", k_once, k_completes, worker},
    // A preview changes nothing, so the host may repeat it.
    OperationProperties{file_edit_set, "file.edit_set", k_once, k_completes, worker},
    OperationProperties{file_undo, "file.undo", k_once, k_completes, worker},
    OperationProperties{file_list, "file.list", k_repeatable, k_cancellable, search},
    OperationProperties{file_glob, "file.glob", k_repeatable, k_cancellable, search},
    OperationProperties{file_grep, "file.grep", k_repeatable, k_cancellable, search},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < k_operations.size(); ++i) {
    if (static_cast<std::size_t>(k_operations[i].operation) != i) {
      return false;
    }
  }
  return k_operations.size() == static_cast<std::size_t>(file_grep) + 1;
}
static_assert(is_in_order());

}  // namespace

std::span<const OperationProperties> operations() {
  return k_operations;
}

const OperationProperties& properties_of(Operation operation) {
  return k_operations.at(static_cast<std::size_t>(operation));
}

std::optional<Operation> operation_named(std::string_view name) {
  const auto found = std::find_if(k_operations.begin(), k_operations.end(),
                                  [&](const OperationProperties& entry) { return entry.name == name; });
  return found == k_operations.end() ? std::nullopt : std::optional(found->operation);
}

}  // namespace dockbridge::wire
