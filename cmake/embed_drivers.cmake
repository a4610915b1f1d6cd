# Writes OUT, an assembler source with all files of DRIVERS: for each its installed name and its size in decimal, both
# ended by NUL, and its content. Their digest follows. python.py is installed as dockbridge_driver.py, python_NAME.py as
# dockbridge_NAME.py, and any other file under its own name.
set(entries "")
set(hashes "")
foreach(driver ${DRIVERS})
  cmake_path(GET driver FILENAME name)
  if(name STREQUAL "python.py")
    set(name dockbridge_driver.py)
  else()
    string(REGEX REPLACE "^python_" "dockbridge_" name ${name})
  endif()
  file(SIZE ${driver} size)
  file(SHA256 ${driver} hash)
  string(APPEND hashes "${name} ${hash}\n")
  string(APPEND entries "    .asciz \"${name}\"\n    .asciz \"${size}\"\n    .incbin \"${driver}\"\n")
endforeach()
string(SHA256 digest "${hashes}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUT} "    .section .rodata
    .global dockbridge_drivers_begin
    .global dockbridge_drivers_end
    .global dockbridge_drivers_digest
dockbridge_drivers_begin:
${entries}dockbridge_drivers_end:
    .byte 0
dockbridge_drivers_digest:
    .asciz \"${digest}\"
    .section .note.GNU-stack,\"\",%progbits
")
