/*
 * A thread ends in the middle of a failing call, while memory is asked for on
 * its behalf; then another thread fails.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

static CUcontext context;
static _Atomic bool is_inside; /* the failing call, or after it where nobody is asked */

static int asked(void *unused, int device, uint64_t wanted_bytes)
{
    (void)unused, (void)device, (void)wanted_bytes;
    atomic_store(&is_inside, true);
    usleep(200000);
    return 0;
}

static void end(int signal)
{
    (void)signal;
    pthread_exit(NULL);
}

static void *fail(void *unused)
{
    CUdeviceptr memory;

    MUST(driver.context_set(context));
    driver.mem_alloc(&memory, 512 * MIB);
    atomic_store(&is_inside, true);
    for (;;)
        pause();
    return unused;
}

static void let_one_end(void)
{
    pthread_t thread;

    if (signal(SIGUSR1, end) == SIG_ERR || pthread_create(&thread, NULL, fail, NULL) != 0)
        exit(1);
    while (!atomic_load(&is_inside))
        usleep(1000);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
}

static unsigned long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

int main(void)
{
    CUdeviceptr memory;

    open_device();
    MUST(driver.context_get(&context));
    MUST(driver.mem_alloc(&memory, free_bytes() - 64 * MIB));
    if (gpuoomshim_register_flush)
        gpuoomshim_register_flush("asked", asked, NULL);
    let_one_end();
    unsigned long long began_ms = now_ms();
    outcome("asked", driver.mem_alloc(&memory, 512 * MIB));
    fprintf(stderr, "shim: waited_ms=%llu\n", now_ms() - began_ms);
    return 0;
}
