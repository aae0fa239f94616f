/*
 * Allocations whose caller is generated code without unwind data, with and
 * without a frame pointer, and stacks that are damaged at the time of the call
 * (and repaired before they are returned through).
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

#if defined(__x86_64__)

typedef CUresult (*allocate)(CUdeviceptr *, size_t);
/* Calls function(address, bytes); `word` is what the stack is damaged with. */
typedef CUresult (*bridge)(allocate function, CUdeviceptr *address, size_t bytes, uintptr_t word);

#define CALL 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0xff, 0xd0

/* push rbp; mov rbp, rsp; call; pop rbp; ret */
static const unsigned char with_frame_pointer[] = {0x55, 0x48, 0x89, 0xe5, CALL, 0x5d, 0xc3};

/* sub rsp, 24; call; add rsp, 24; ret */
static const unsigned char without_frame_pointer[] = {0x48, 0x83, 0xec, 0x18, CALL,
                                                      0x48, 0x83, 0xc4, 0x18, 0xc3};

/* push rbp; mov rbp, rcx; call; pop rbp; ret */
static const unsigned char wrong_frame_pointer[] = {0x55, 0x48, 0x89, 0xcd, CALL, 0x5d, 0xc3};

/* push rbx; mov rbx, [rsp+8]; mov [rsp+8], rcx; call; mov [rsp+8], rbx; pop rbx; ret */
static const unsigned char wrong_return_address[] = {0x53, 0x48, 0x8b, 0x5c, 0x24, 0x08, 0x48,
                                                     0x89, 0x4c, 0x24, 0x08, CALL, 0x48, 0x89,
                                                     0x5c, 0x24, 0x08, 0x5b, 0xc3};

/* A compiled function whose caller's frame pointer, as saved in its frame, is damaged. */
CUresult smash(allocate function, CUdeviceptr *address, size_t bytes, uintptr_t word);
__asm__(".text\n"
        ".globl smash\n"
        ".type smash, @function\n"
        "smash:\n"
        "    .cfi_startproc\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    mov %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    .cfi_offset %rbx, -24\n"
        "    mov (%rbp), %rbx\n"
        "    mov %rcx, (%rbp)\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    mov %rdx, %rsi\n"
        "    call *%rax\n"
        "    mov %rbx, (%rbp)\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size smash, .-smash\n");

/* The same with the address that it returns to. */
CUresult smash_return(allocate function, CUdeviceptr *address, size_t bytes, uintptr_t word);
__asm__(".text\n"
        ".globl smash_return\n"
        ".type smash_return, @function\n"
        "smash_return:\n"
        "    .cfi_startproc\n"
        "    push %rbx\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbx, -16\n"
        "    mov 8(%rsp), %rbx\n"
        "    mov %rcx, 8(%rsp)\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    mov %rdx, %rsi\n"
        "    call *%rax\n"
        "    mov %rbx, 8(%rsp)\n"
        "    pop %rbx\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size smash_return, .-smash_return\n");

static bridge generate(const unsigned char *code, size_t bytes)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        exit(1);
    memcpy(page, code, bytes);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    return (bridge)page;
}
#define GENERATE(code) generate(code, sizeof(code))

/* Twice from the same place: the second time the stack may be recognised. */
static void allocate_through(const char *what, bridge through, uintptr_t word)
{
    CUdeviceptr addresses[3];
    for (int i = 0; i < 3; i++)
        outcome(what, through(driver.mem_alloc, &addresses[i], MIB, word));
    for (int i = 0; i < 3; i++)
        MUST(driver.mem_free(addresses[i]));
}

static void damage(const char *what, bridge through)
{
    char *gap = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const uintptr_t words[] = {0,
                               1,
                               8,
                               (uintptr_t)gap,
                               (uintptr_t)gap + 4090,
                               UINTPTR_MAX,
                               UINT64_C(0xdeadbeefdeadbeef),
                               UINT64_C(0x00007ffffffff000),
                               here,
                               here - 256,
                               here + 3,
                               (uintptr_t)&damage};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        allocate_through(what, through, words[i]);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "jit";

    open_device();
    if (strcmp(part, "jit") == 0) {
        allocate_through("with a frame pointer", GENERATE(with_frame_pointer), 0);
        allocate_through("without a frame pointer", GENERATE(without_frame_pointer), 0);
    } else if (strcmp(part, "frame-pointer") == 0) {
        damage(part, GENERATE(wrong_frame_pointer));
    } else if (strcmp(part, "return-address") == 0) {
        damage(part, GENERATE(wrong_return_address));
    } else if (strcmp(part, "compiled-return-address") == 0) {
        damage(part, smash_return);
    } else {
        damage(part, smash);
    }
    tell_live();
    return 0;
}

#else

int main(void)
{
    printf("outcome: this test is for x86-64\n");
    return 77;
}

#endif
