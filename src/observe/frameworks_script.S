/* The text of frameworks_script.py, as it stands. */
    .section .rodata
    .global gos_frameworks_script
    .hidden gos_frameworks_script
    .type gos_frameworks_script, %object
gos_frameworks_script:
    .incbin "src/observe/frameworks_script.py"
    .byte 0
    .size gos_frameworks_script, . - gos_frameworks_script

    .section .note.GNU-stack, "", %progbits
