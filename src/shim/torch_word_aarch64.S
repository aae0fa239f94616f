/* torch's functions as it finds them in us; see torch_word_x86_64.S for the reason. */
    .text

    .macro  WORD symbol, choose
    .globl  \symbol
    .type   \symbol, %function
    .p2align 4
\symbol:
    .cfi_startproc
    hint    34                      /* bti c */
    stp     x29, x30, [sp, #-64]!
    .cfi_adjust_cfa_offset 64
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    stp     x2, x3, [sp, #32]
    str     x4, [sp, #48]
    mov     x5, x30                 /* who calls */
    bl      \choose
    mov     x16, x0
    ldp     x0, x1, [sp, #16]
    ldp     x2, x3, [sp, #32]
    ldr     x4, [sp, #48]
    ldp     x29, x30, [sp], #64
    .cfi_adjust_cfa_offset -64
    .cfi_restore x29
    .cfi_restore x30
    br      x16
    .cfi_endproc
    .size   \symbol, . - \symbol
    .endm

#define TORCH_WORD(row, symbol, tells) WORD symbol, gos_torch_choose_##row
#include "torch_word.def"

    .section .note.GNU-stack, "", %progbits
