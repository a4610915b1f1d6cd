file(SHA256 ${AGENT} hash)
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUT} "    .section .rodata
    .global dockbridge_agent_begin
    .global dockbridge_agent_end
    .global dockbridge_agent_hash
    .balign 16
dockbridge_agent_begin:
    .incbin \"${AGENT}\"
dockbridge_agent_end:
    .byte 0
dockbridge_agent_hash:
    .asciz \"${hash}\"
    .section .note.GNU-stack,\"\",%progbits
")
