# A unity build compiles several sources as one, which saves most of the time for headers. After a change it compiles a
# whole group again, so the preset `debug` does without it.

# dockbridge_unity(TARGET): in a unity build, compiles up to 8 sources of the same folder together. So names in
# anonymous namespaces are unique within a folder.
function(dockbridge_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR ${folder}_count "0${${folder}_count} + 1")
    math(EXPR number "(${${folder}_count} - 1) / 8")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${number})
  endforeach()
endfunction()
