/*
 * dlsym and dlvsym as the host sees them.
 *
 * glibc's dlsym looks at its return address to know who asks (RTLD_NEXT,
 * RTLD_DEFAULT).  So when the look-up is not ours to answer we must not be on
 * the stack: the chooser is called, the arguments are put back, and the real
 * function is entered by a jump, with the host's return address on top.
 *
 * The chooser returns {result, target} in rax and rdx; target wins.
 */
    .text

    .globl  dlsym
    .type   dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    endbr64
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq    24(%rsp), %rdx          /* who asks */
    call    gos_dlsym_choose
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    testq   %rdx, %rdx
    jnz     1f
    ret
1:  jmp     *%rdx
    .cfi_endproc
    .size   dlsym, . - dlsym

    .globl  dlvsym
    .type   dlvsym, @function
    .p2align 4
dlvsym:
    .cfi_startproc
    endbr64
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    call    gos_dlvsym_choose
    movq    %rdx, %r11
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    testq   %r11, %r11
    jnz     1f
    ret
1:  jmp     *%r11
    .cfi_endproc
    .size   dlvsym, . - dlvsym

    .section .note.GNU-stack, "", @progbits
