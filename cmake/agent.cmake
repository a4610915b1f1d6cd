# The program inside the container. It is static and small, and needs nothing from the image.

# With the address sanitizer, the agent is sanitized as well. It then needs the container's glibc, because a static
# program cannot have that sanitizer, but no other library. With the thread sanitizer, it stays the plain program.
if(DOCKBRIDGE_SANITIZE MATCHES address)
  set(agent_is_sanitized ON)
else()
  set(agent_is_sanitized OFF)
endif()

# dockbridge_objects(NAME SOURCE...): object files of the agent. Host and tests link NAME_host: the same
# objects, or others with a sanitizer if the agent has none.
function(dockbridge_objects name)
  set(targets ${name})
  if(DOCKBRIDGE_SANITIZE AND NOT agent_is_sanitized)
    list(APPEND targets ${name}_host)
  endif()
  foreach(target ${targets})
    add_library(${target} OBJECT ${ARGN})
    target_include_directories(${target} PUBLIC src)
    target_compile_definitions(${target} PUBLIC DOCKBRIDGE_VERSION="${PROJECT_VERSION}")
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
    target_link_libraries(${target} PRIVATE dockbridge_warnings)
    target_precompile_headers(${target} PRIVATE <nlohmann/json.hpp> <fmt/format.h> <string> <vector> <map>)
    dockbridge_unity(${target})
  endforeach()
  # The agent is optimized in debug builds, too, because tests check its limits of time and memory.
  target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Release>>:-O2>)
  if(NOT TARGET ${name}_host)
    add_library(${name}_host ALIAS ${name})
  endif()
  list(GET targets -1 host_objects)
  target_link_libraries(${host_objects} PRIVATE dockbridge_sanitizers)
endfunction()

# Code of host and agent.
dockbridge_objects(dockbridge_shared
  src/error/error_code.cpp
  src/wire/code_session.cpp
  src/wire/codec.cpp
  src/wire/error_message.cpp
  src/wire/fields.cpp
  src/wire/file_change_messages.cpp
  src/wire/file_messages.cpp
  src/wire/file_read_messages.cpp
  src/wire/file_search_messages.cpp
  src/wire/frame.cpp
  src/wire/input_messages.cpp
  src/wire/operation.cpp
  src/wire/output_messages.cpp
  src/wire/route.cpp
  src/wire/side_channel.cpp
  src/wire/session_messages.cpp
  src/wire/terminal.cpp
  src/wire/process_state.cpp
  src/wire/wait_messages.cpp
  src/wire/write_order.cpp
  src/util/beneath.cpp
  src/util/file.cpp
  src/util/terminal_parser.cpp
  src/util/json_parse.cpp
  src/util/json_text.cpp
  src/util/socket_address.cpp
  src/util/temporary_name.cpp
  src/util/text.cpp)

# The drivers of code sessions are embedded in the agent, which installs them in the container.
set(driver_sources)
foreach(driver bash bootstrap.py python.py python_ipython.py python_magics.py python_rich.py shell.sh)
  list(APPEND driver_sources ${CMAKE_CURRENT_SOURCE_DIR}/src/agent/drivers/${driver})
endforeach()
set(embedded_drivers ${CMAKE_CURRENT_BINARY_DIR}/drivers.S)
add_custom_command(
  OUTPUT ${embedded_drivers}
  COMMAND ${CMAKE_COMMAND} "-DDRIVERS=${driver_sources}" -DOUT=${embedded_drivers}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_drivers.cmake
  DEPENDS ${driver_sources} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_drivers.cmake
  VERBATIM)

# The agent without its main function. The code of sessions and keepers is adjacent, so that they share its pages.
dockbridge_objects(agent_core
  ${embedded_drivers}
  src/agent/launch.cpp
  src/agent/moment.cpp
  src/agent/record.cpp
  src/agent/order_page.cpp
  src/agent/program_path.cpp
  src/agent/spool.cpp
  src/agent/code/driver_command.cpp
  src/agent/code/driver_files.cpp
  src/agent/code/interpreter.cpp
  src/agent/code/memory_policy.cpp
  src/agent/code/memory_use.cpp
  src/agent/code/side_events.cpp
  src/agent/code/warm_policy.cpp
  src/agent/session/command_environment.cpp
  src/agent/session/direct_line.cpp
  src/agent/session/driver_starts.cpp
  src/agent/session/event_loop.cpp
  src/agent/control/assignment.cpp
  src/agent/session/file_watches.cpp
  src/agent/session/file_workers.cpp
  src/agent/session/grep_list.cpp
  src/agent/session/host_stream.cpp
  src/agent/keeper/activity_monitor.cpp
  src/agent/keeper/child.cpp
  src/agent/keeper/command_end.cpp
  src/agent/keeper/command_input.cpp
  src/agent/keeper/command_output.cpp
  src/agent/session/frozen_time.cpp
  src/agent/control/packets.cpp
  src/agent/session/idempotency.cpp
  src/agent/session/identity.cpp
  src/agent/session/input_requests.cpp
  src/agent/keeper/input_judgement.cpp
  src/agent/keeper/input_orders.cpp
  src/agent/keeper/input_wait.cpp
  src/agent/session/keeper_link.cpp
  src/agent/keeper/keeper.cpp
  src/agent/session/keeper_pool.cpp
  src/agent/session/memory_guard.cpp
  src/agent/keeper/links.cpp
  src/agent/keeper/out_of_memory.cpp
  src/agent/keeper/output_end.cpp
  src/agent/keeper/own_channel.cpp
  src/agent/process_tree.cpp
  src/agent/keeper/side_channel.cpp
  src/agent/control/taken_inputs.cpp
  src/agent/keeper/service.cpp
  src/agent/session/output_grep.cpp
  src/agent/session/output_requests.cpp
  src/agent/keeper/starvation.cpp
  src/agent/keeper/streams.cpp
  src/agent/session/pattern.cpp
  src/agent/keeper/terminal.cpp
  src/agent/session/pattern_watch.cpp
  src/agent/keeper/usage.cpp
  src/agent/keeper/warm_child.cpp
  src/agent/session/ports.cpp
  src/agent/session/process.cpp
  src/agent/session/process_starter.cpp
  src/agent/session/process_table.cpp
  src/agent/session/pruner.cpp
  src/agent/session/session.cpp
  src/agent/session/shell.cpp
  src/agent/session/silence.cpp
  src/agent/session/process_numbers.cpp
  src/agent/session/state_directory.cpp
  src/agent/session/survivors.cpp
  src/agent/session/wait.cpp
  src/agent/session/warm_interpreters.cpp
  src/agent/session/wait_answer.cpp
  src/agent/session/wait_list.cpp
  src/agent/session/wait_requests.cpp
  src/agent/screen/emulator.cpp
  src/agent/screen/service.cpp
  src/agent/files/search/find_files.cpp
  src/agent/files/search/glob.cpp
  src/agent/files/search/ignore_rules.cpp
  src/agent/files/search/line_collector.cpp
  src/agent/files/search/literal_scan.cpp
  src/agent/files/search/matcher.cpp
  src/agent/files/search/open_beneath.cpp
  src/agent/files/search/required_literal.cpp
  src/agent/files/search/search.cpp
  src/agent/files/search/text_reader.cpp
  src/agent/files/search/tree_walk.cpp
  src/agent/files/text/binary_kind.cpp
  src/agent/files/service/change_requests.cpp
  src/agent/files/image/confinement.cpp
  src/agent/files/change/change_committer.cpp
  src/agent/files/change/change_guard.cpp
  src/agent/files/change/content_pack.cpp
  src/agent/files/change/content_store.cpp
  src/agent/files/service/copy_requests.cpp
  src/agent/files/change/current_file.cpp
  src/agent/files/change/deferred_work.cpp
  src/agent/files/text/diff.cpp
  src/agent/files/service/download.cpp
  src/agent/files/text/edit.cpp
  src/agent/files/change/edit_set.cpp
  src/agent/files/text/encoding.cpp
  src/agent/files/change/file_changer.cpp
  src/agent/files/service/file_description.cpp
  src/agent/files/change/file_history.cpp
  src/agent/files/file_space.cpp
  src/agent/files/change/file_writer.cpp
  src/agent/files/image/image_header.cpp
  src/agent/files/image/image_scale.cpp
  src/agent/files/change/in_place.cpp
  src/agent/files/text/line_comparison.cpp
  src/agent/files/text/near_match.cpp
  src/agent/files/change/orphan_sweep.cpp
  src/agent/files/change/prepared_edit.cpp
  src/agent/files/text/overlooked.cpp
  src/agent/files/service/read_requests.cpp
  src/agent/files/revision.cpp
  src/agent/files/service/searching.cpp
  src/agent/files/service/service.cpp
  src/agent/files/change/spare_file.cpp
  src/agent/files/change/staged_content.cpp
  src/agent/files/change/temporary_file.cpp
  src/agent/files/text/text_page.cpp
  src/agent/files/change/write_journal.cpp)
# Images are rare, and -O3 would make the decoder 170 KB larger. Its options do not fit the precompiled header.
set_source_files_properties(src/agent/files/image/image_scale.cpp PROPERTIES
  COMPILE_OPTIONS -Os SKIP_PRECOMPILE_HEADERS ON)

# src/agent/fmt.cpp replaces the fmt library, of which Debian has only a shared one.
add_executable(dockbridge-agent src/agent/main.cpp src/agent/fmt.cpp)
target_compile_options(dockbridge-agent PRIVATE -ffunction-sections -fdata-sections)
target_link_options(dockbridge-agent PRIVATE -Wl,--gc-sections)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(RE2 REQUIRED re2)
pkg_check_modules(VTERM REQUIRED vterm)
find_path(STB_INCLUDE_DIR stb/stb_image.h REQUIRED)  # headers only, because their configuration is in the source
target_link_libraries(dockbridge-agent PRIVATE dockbridge_warnings dockbridge_shared agent_core -Wl,-Bstatic
                      ${RE2_STATIC_LDFLAGS} ${VTERM_STATIC_LDFLAGS} Threads::Threads)
if(agent_is_sanitized)
  target_link_libraries(dockbridge-agent PRIVATE -Wl,-Bdynamic dockbridge_sanitizers)
  target_link_options(dockbridge-agent PRIVATE -static-libasan -static-libubsan -static-libstdc++ -static-libgcc)
  set(agent_strip_option --strip-debug)  # reports name functions
else()
  target_link_options(dockbridge-agent PRIVATE -static)
  set(agent_strip_option --strip-all)
endif()

# The agent is embedded in dockbridge, stripped and named by the hash of its content.
set(agent_image_source ${CMAKE_CURRENT_BINARY_DIR}/agent_image.S)
add_custom_command(
  OUTPUT ${agent_image_source}
  COMMAND ${CMAKE_STRIP} ${agent_strip_option} -o ${CMAKE_CURRENT_BINARY_DIR}/dockbridge-agent.stripped
          $<TARGET_FILE:dockbridge-agent>
  COMMAND ${CMAKE_COMMAND} -DAGENT=${CMAKE_CURRENT_BINARY_DIR}/dockbridge-agent.stripped -DOUT=${agent_image_source}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_agent.cmake
  DEPENDS dockbridge-agent ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_agent.cmake
  VERBATIM)
