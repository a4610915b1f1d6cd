# The program on the host. Everything but main is in libraries, one for each folder of src, so that tests and benchmarks
# use the same code, and a change relinks only the programs that contain it.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Boost REQUIRED COMPONENTS filesystem)
find_package(OpenSSL REQUIRED)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
# The flags of the package are needed, because they change the layout of the library's objects.
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)

# dockbridge_room(NAME SOURCE...): the library dockbridge_NAME, with the sources of src/NAME.
function(dockbridge_room name)
  add_library(dockbridge_${name} STATIC ${ARGN})
  target_include_directories(dockbridge_${name} PUBLIC src)
  target_link_libraries(dockbridge_${name} PUBLIC dockbridge_warnings dockbridge_sanitizers)
  dockbridge_unity(dockbridge_${name})
endfunction()

dockbridge_room(cli
  src/cli/bridge.cpp
  src/cli/call.cpp
  src/cli/doctor.cpp
  src/cli/host_paths.cpp
  src/cli/http.cpp
  src/cli/options.cpp
  src/cli/serve.cpp)
target_link_libraries(dockbridge_cli PUBLIC dockbridge_docker dockbridge_tools PRIVATE CLI11::CLI11)

dockbridge_room(docker
  src/docker/address.cpp
  src/docker/api_engine.cpp
  src/docker/cli_engine.cpp
  src/docker/command.cpp
  src/docker/docker_channel.cpp
  src/docker/file_trust.cpp
  src/docker/http.cpp
  src/docker/tar.cpp)
target_link_libraries(dockbridge_docker PUBLIC dockbridge_sandbox PRIVATE Boost::filesystem PkgConfig::CURL)

dockbridge_room(mcp
  src/mcp/bulletin.cpp
  src/mcp/call.cpp
  src/mcp/call_admission.cpp
  src/mcp/call_registry.cpp
  src/mcp/call_scheduler.cpp
  src/mcp/catalogue.cpp
  src/mcp/client_questions.cpp
  src/mcp/conversation.cpp
  src/mcp/listeners.cpp
  src/mcp/lists.cpp
  src/mcp/message.cpp
  src/mcp/methods.cpp
  src/mcp/metrics.cpp
  src/mcp/once.cpp
  src/mcp/once_keys.cpp
  src/mcp/peer.cpp
  src/mcp/prompt_methods.cpp
  src/mcp/resource_methods.cpp
  src/mcp/result_format.cpp
  src/mcp/server.cpp
  src/mcp/session_methods.cpp
  src/mcp/skill.cpp
  src/mcp/skill_methods.cpp
  src/mcp/state_seal.cpp
  src/mcp/subscription_methods.cpp
  src/mcp/subscriptions.cpp
  src/mcp/task_methods.cpp
  src/mcp/tasks.cpp
  src/mcp/tool_methods.cpp
  src/mcp/visibility.cpp
  src/mcp/transport/http/access.cpp
  src/mcp/transport/http/connection.cpp
  src/mcp/transport/http/connection_table.cpp
  src/mcp/transport/http/front.cpp
  src/mcp/transport/http/health_paths.cpp
  src/mcp/transport/http/listener.cpp
  src/mcp/transport/http/loopback.cpp
  src/mcp/transport/http/mcp_path.cpp
  src/mcp/transport/http/message_exchange.cpp
  src/mcp/transport/http/origins.cpp
  src/mcp/transport/http/outbox.cpp
  src/mcp/transport/http/refusal.cpp
  src/mcp/transport/http/sessions.cpp
  src/mcp/transport/http/socket.cpp
  src/mcp/transport/http/stateless_headers.cpp
  src/mcp/transport/http/token_file.cpp
  src/mcp/transport/http_server.cpp
  src/mcp/transport/stdio.cpp)
target_link_libraries(dockbridge_mcp PUBLIC dockbridge_util PRIVATE PkgConfig::HTTPLIB OpenSSL::SSL)

dockbridge_room(sandbox
  src/sandbox/agent_image.cpp
  src/sandbox/agent_launch.cpp
  src/sandbox/agent_link.cpp
  src/sandbox/channel.cpp
  src/sandbox/code_sessions.cpp
  src/sandbox/connection.cpp
  src/sandbox/direct_line.cpp
  src/sandbox/download.cpp
  src/sandbox/greeting.cpp
  src/sandbox/outgoing_queue.cpp
  src/sandbox/process_calls.cpp
  src/sandbox/process_control.cpp
  src/sandbox/processes.cpp
  src/sandbox/file_calls.cpp
  src/sandbox/files.cpp
  src/sandbox/sandbox.cpp
  src/sandbox/session_events.cpp
  src/sandbox/session_track.cpp
  src/sandbox/trusted_runs.cpp
  src/sandbox/upload.cpp
  ${agent_image_source})
target_link_libraries(dockbridge_sandbox PUBLIC dockbridge_util)

dockbridge_room(tools
  src/tools/argument_names.cpp
  src/tools/arguments.cpp
  src/tools/cell_content.cpp
  src/tools/cell_report.cpp
  src/tools/cell_run.cpp
  src/tools/check_process.cpp
  src/tools/client_patience.cpp
  src/tools/command_tasks.cpp
  src/tools/compat_tools.cpp
  src/tools/client_notices.cpp
  src/tools/control_process.cpp
  src/tools/execute_command.cpp
  src/tools/file_edit.cpp
  src/tools/file_glob.cpp
  src/tools/file_grep.cpp
  src/tools/file_ls.cpp
  src/tools/file_read.cpp
  src/tools/file_report.cpp
  src/tools/search_start.cpp
  src/tools/file_transfer.cpp
  src/tools/file_undo.cpp
  src/tools/file_write.cpp
  src/tools/following.cpp
  src/tools/host_directories.cpp
  src/tools/host_file.cpp
  src/tools/output.cpp
  src/tools/process_list.cpp
  src/tools/process_report.cpp
  src/tools/prompts.cpp
  src/tools/python.cpp
  src/tools/resources.cpp
  src/tools/send_input.cpp
  src/tools/skills.cpp
  src/tools/tool_selection.cpp
  src/tools/tool_shape.cpp
  src/tools/tool_table.cpp
  src/tools/toolbox.cpp
  src/tools/session_export.cpp
  src/tools/shell_command.cpp
  src/tools/shown_cursors.cpp
  src/tools/stream_parts.cpp
  src/tools/view.cpp
  src/tools/wait_arguments.cpp
  src/tools/wait_report.cpp)
target_link_libraries(dockbridge_tools PUBLIC dockbridge_mcp dockbridge_sandbox)

dockbridge_room(util
  src/util/encoding.cpp
  src/util/log.cpp
  src/util/path_walk.cpp
  src/util/random.cpp
  src/util/sha256.cpp
  src/util/terminal_transcript.cpp
  src/util/trusted_file.cpp
  src/util/worker_pool.cpp)
target_link_libraries(dockbridge_util
  PUBLIC dockbridge_shared_host nlohmann_json::nlohmann_json fmt::fmt tl::expected Threads::Threads
  PRIVATE OpenSSL::SSL)

target_precompile_headers(dockbridge_util PRIVATE <nlohmann/json.hpp> <fmt/format.h> <string> <vector> <map>)
foreach(room cli docker mcp sandbox tools)
  target_precompile_headers(dockbridge_${room} REUSE_FROM dockbridge_util)
endforeach()

# CLI11 is slow to optimize, and options are read once. Its options do not fit the precompiled header.
set_source_files_properties(src/cli/options.cpp PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)

add_executable(dockbridge src/main.cpp)
target_link_libraries(dockbridge PRIVATE dockbridge_cli)
install(TARGETS dockbridge RUNTIME)
