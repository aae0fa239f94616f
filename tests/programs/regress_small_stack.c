/* A thread with a stack of 48 KiB fails, and then one with an ordinary stack. */
#include <pthread.h>

#include "host.h"

#define STACK_BYTES ((size_t)48 << 10)

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

int main(void)
{
    CUdeviceptr rest;

    open_device();
    MUST(driver.context_get(&context));
    MUST(driver.mem_alloc(&rest, free_bytes() - 64 * MIB));
    fail_on(STACK_BYTES);
    fail_on(1 * MIB);
    return 0;
}
