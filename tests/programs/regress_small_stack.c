/*
 * Allocations fail on small stacks: a thread's of 48 KiB, and then one of
 * ordinary size.  "first": coroutines of the process' first thread, whose own
 * stack has room: one that fails; one that asks again for less until that is
 * expected of it.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "host.h"

#define STACK_BYTES ((size_t)48 << 10)
#define GUARD_BYTES ((size_t)64 << 10)
#define ROUNDS 4

static CUcontext context;

static void *fail(void *unused)
{
    CUdeviceptr memory;

    MUST(driver.context_set(context));
    outcome("asked", driver.mem_alloc(&memory, 512 * MIB));
    return unused;
}

static void fail_on(size_t stack_bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;

    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, stack_bytes) != 0 ||
        pthread_create(&thread, &attributes, fail, NULL) != 0)
        exit(1);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

/* What a coroutine was answered; written outside, where there is room for printf. */
static CUresult answers[2 * ROUNDS];
static CUdeviceptr got[ROUNDS];

static void ask_for_too_much(void)
{
    answers[0] = driver.mem_alloc(&got[0], 512 * MIB);
}

static void ask_for_less_each_time(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        answers[2 * i] = driver.mem_alloc(&got[i], 48 * MIB);
        answers[2 * i + 1] = driver.mem_alloc(&got[i], 24 * MIB);
        driver.mem_free(got[i]);
    }
}

static void run_on(size_t stack_bytes, void (*function)(void))
{
    static ucontext_t back, coroutine;
    char *stack =
        mmap(NULL, GUARD_BYTES + stack_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (stack == MAP_FAILED || getcontext(&coroutine) != 0 ||
        mprotect(stack + GUARD_BYTES, stack_bytes, PROT_READ | PROT_WRITE) != 0)
        exit(1);
    coroutine.uc_stack.ss_sp = stack + GUARD_BYTES;
    coroutine.uc_stack.ss_size = stack_bytes;
    coroutine.uc_link = &back;
    makecontext(&coroutine, function, 0);
    swapcontext(&back, &coroutine);
    munmap(stack, GUARD_BYTES + stack_bytes);
}

static void tell(int count)
{
    for (int i = 0; i < count; i++)
        outcome("asked", answers[i]);
}

int main(int count, char **words)
{
    CUdeviceptr rest;

    open_device();
    MUST(driver.context_get(&context));
    MUST(driver.mem_alloc(&rest, free_bytes() - 32 * MIB));
    if (count > 1 && strcmp(words[1], "first") == 0) {
        run_on(STACK_BYTES, ask_for_too_much);
        tell(1);
        run_on(STACK_BYTES / 4, ask_for_less_each_time);
        tell(2 * ROUNDS);
        return 0;
    }
    fail_on(STACK_BYTES);
    fail_on(1 * MIB);
    return 0;
}
