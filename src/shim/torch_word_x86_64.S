/*
 * torch's functions as it finds them in us.  Our part comes first, with the
 * arguments saved, and says where the real function is.  That one is entered by
 * a jump: when it throws, or torch right after it, no frame of ours is unwound.
 */
    .text

    .macro  WORD symbol, choose
    .globl  \symbol
    .type   \symbol, @function
    .p2align 4
\symbol:
    .cfi_startproc
    endbr64
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    pushq   %rcx
    .cfi_adjust_cfa_offset 8
    pushq   %r8
    .cfi_adjust_cfa_offset 8
    movq    40(%rsp), %r9           /* who calls */
    call    \choose
    popq    %r8
    .cfi_adjust_cfa_offset -8
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    jmp     *%rax
    .cfi_endproc
    .size   \symbol, . - \symbol
    .endm

#define TORCH_WORD(row, symbol, tells) WORD symbol, gos_torch_choose_##row
#include "torch_word.def"

    .section .note.GNU-stack, "", @progbits
