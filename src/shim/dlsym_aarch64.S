/*
 * dlsym and dlvsym as the host sees them; see dlsym_x86_64.S for the reason.
 * The chooser returns {result, target} in x0 and x1; target wins.
 */
    .text

    .macro  LOOKUP name, chooser, third
    .globl  \name
    .type   \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint    34                      /* bti c */
    stp     x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    str     x2, [sp, #32]
    mov     x2, \third
    bl      \chooser
    mov     x17, x0
    mov     x16, x1
    ldp     x0, x1, [sp, #16]
    ldr     x2, [sp, #32]
    ldp     x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x29
    .cfi_restore x30
    cbnz    x16, 1f
    mov     x0, x17
    ret
1:  br      x16
    .cfi_endproc
    .size   \name, . - \name
    .endm

    LOOKUP  dlsym, gos_dlsym_choose, x30 /* who asks */
    LOOKUP  dlvsym, gos_dlvsym_choose, x2

    .section .note.GNU-stack, "", %progbits
