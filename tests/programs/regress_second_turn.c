/*
 * One thread recovers for as long as it may, and another, which wants less, has
 * to wait for it: what it waits is part of its own time.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

static CUcontext context;
static size_t at_start;

static int be_late(void *arg, int device, uint64_t wanted_bytes)
{
    (void)arg, (void)device, (void)wanted_bytes;
    sleep(20);
    return 0;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void ask(unsigned mib)
{
    CUdeviceptr memory;
    uint64_t began_ms = now_ms();

    outcome("asked", driver.mem_alloc(&memory, scaled(at_start, mib)));
    fprintf(stderr, "shim: took_ms=%" PRIu64 "\n", now_ms() - began_ms);
}

static void *second(void *unused)
{
    MUST(driver.context_set(context));
    usleep(200000);
    ask(6000);
    return unused;
}

int main(void)
{
    CUdeviceptr live;
    pthread_t thread;

    open_device();
    MUST(driver.context_get(&context));
    at_start = free_bytes();
    MUST(driver.mem_alloc(&live, scaled(at_start, 12288)));
    if (gpuoomshim_register_flush)
        gpuoomshim_register_flush("keeper", be_late, NULL);
    if (pthread_create(&thread, NULL, second, NULL) != 0)
        exit(1);
    ask(8192);
    pthread_join(thread, NULL);
    fflush(stdout);
    _exit(0); /* the callback is still asleep */
}
