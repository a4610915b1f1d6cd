#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace dockbridge {

/// Every kind of error. The names are part of the interface and do not change: clients compare them.
enum class ErrorCode : std::uint8_t {
  // calls
  bad_arguments,
  bad_pattern,
  too_many_calls,
  server_stopping,
  cancelled,
  bad_idempotency_key,
  already_done,
  too_many_keys,
  idempotency_conflict,
  internal_error,
  resource_not_found,
  bad_cursor,
  client_refused,
  client_silent,
  not_a_task,
  // processes
  bad_process_id,
  no_such_process,
  process_expired,
  process_ended,
  process_gone,
  process_exists,
  never_started,
  stdin_closed,
  no_terminal,
  no_screen,
  keys_not_taken,
  no_shell,
  no_such_program,
  no_such_user,
  bad_cwd,
  cannot_switch_user,
  cannot_execute,
  cannot_start,
  cannot_fork,
  command_too_long,
  too_long,
  too_large,
  no_python,
  python_too_old,
  session_busy,
  session_lost,
  too_many_sessions,
  // files
  bad_path,
  path_too_long,
  no_such_file,
  not_a_directory,
  is_a_directory,
  not_a_file,
  symlink_loop,
  dangling_link,
  outside_root,
  read_only,
  disk_full,
  not_read,
  file_changed,
  same_file,
  too_many_files,
  bad_image,
  out_of_memory,
  directory_locked,
  no_backup,
  half_written,
  is_binary,
  not_decodable,
  not_encodable,
  empty_old_text,
  identical_texts,
  no_match,
  ambiguous_match,
  result_too_large,
  no_such_change,
  content_expired,
  content_damaged,
  nothing_staged,
  is_busy,
  bad_glob,
  not_searchable,
  worker_gone,
  outside_host_path,
  host_path_changed,
  unsafe_host_path,
  host_file,
  host_file_exists,
  // container and engine
  no_engine,
  no_permission,
  no_docker_command,
  bad_docker_host,
  unsupported_docker_host,
  no_such_context,
  engine_error,
  engine_hung,
  exec_failed,
  no_such_container,
  name_in_use,
  container_stopped,
  container_paused,
  container_replaced,
  agent_not_placed,
  agent_failed,
  agent_version,
  state_not_writable,
  no_state_directory,
  unsafe_directory,
  agent_silent,
  agent_busy,
  timed_out,
  no_line,
  connection_lost,
  stream_ended,
  keeper_busy,
  keeper_gone,
  keeper_too_old,
  spool_damaged,
  record_damaged,
  io_error,
  protocol_violation,
  bad_request,
  unknown_operation,
  interrupted,
  // start and HTTP
  bad_option,
  bad_config,
  cannot_listen,
  no_token,
  no_token_file,
  open_token_file,
  bad_token_file,
  bad_certificate,
  bad_key,
  bad_length,
  busy,
  too_slow,
};

enum class ErrorGroup : std::uint8_t { call, process, file, container, start };

/// Row of the error table, from which docs/errors.md is generated.
struct ErrorDescription {
  ErrorCode code;
  ErrorGroup group;
  std::string_view name;
  std::string_view meaning;
  /// Used for an error that has no more specific next step. Without a final full stop.
  std::string_view next_step;
  /// The next step, also a more specific one, advises to make the call again. That could cause its effect twice.
  bool advises_repetition = false;
};

/// All rows, in the order of the enumeration.
std::span<const ErrorDescription> error_table();
const ErrorDescription& describe(ErrorCode code);
std::string_view name_of(ErrorCode code);
/// Code with this name; nullopt if there is none.
std::optional<ErrorCode> error_code_named(std::string_view name);

}  // namespace dockbridge
