/* A refusal is told; what was asked then succeeds on a coroutine's stack of 16 KiB. */
#include <sys/mman.h>
#include <ucontext.h>

#include "host.h"

#define STACK_BYTES ((size_t)16 << 10)
#define GUARD_BYTES ((size_t)64 << 10)

static size_t bytes;
static CUresult answer;

static void ask(void)
{
    CUdeviceptr memory;

    answer = driver.mem_alloc(&memory, bytes);
}

static void run_on_small_stack(void (*function)(void))
{
    static ucontext_t back, coroutine;
    char *stack =
        mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (stack == MAP_FAILED || getcontext(&coroutine) != 0 ||
        mprotect(stack + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) != 0)
        exit(1);
    coroutine.uc_stack.ss_sp = stack + GUARD_BYTES;
    coroutine.uc_stack.ss_size = STACK_BYTES;
    coroutine.uc_link = &back;
    makecontext(&coroutine, function, 0);
    swapcontext(&back, &coroutine);
    munmap(stack, GUARD_BYTES + STACK_BYTES);
}

int main(void)
{
    CUdeviceptr rest;

    open_device();
    bytes = free_bytes() / 2;
    MUST(driver.mem_alloc(&rest, free_bytes() / 4 * 3));
    ask();
    outcome("asked", answer);
    MUST(driver.mem_free(rest));
    run_on_small_stack(ask);
    outcome("asked again", answer);
    return 0;
}
