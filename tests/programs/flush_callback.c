/*
 * A program that keeps idle device memory and has registered how to give it
 * back.  Sizes in MiB of the written scenario.
 *   flush_callback [gives | refuses | late | gone]
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

#define IDLE_COUNT 6

static CUdeviceptr idle[IDLE_COUNT];
static pthread_t asker;
static const char *how = "gives";
static int calls;

static int give_back(void *arg, int device, uint64_t wanted_bytes)
{
    calls++;
    fprintf(stderr, "shim: other_thread=%d\n", !pthread_equal(pthread_self(), asker));
    fprintf(stderr, "shim: device=%d\n", device);
    fprintf(stderr, "shim: wanted=%" PRIu64 "\n", wanted_bytes);
    if (arg != idle || strcmp(how, "refuses") == 0)
        return 42;
    if (strcmp(how, "late") == 0)
        sleep(1);
    for (int i = 0; i < IDLE_COUNT; i++) {
        if (idle[i] && driver.mem_free(idle[i]) == CUDA_SUCCESS)
            idle[i] = 0;
    }
    return 0;
}

static void registered(void)
{
    if (!gpuoomshim_register_flush)
        return;
    fprintf(stderr, "shim: register=%d\n", gpuoomshim_register_flush("keeper", give_back, idle));
    fprintf(stderr, "shim: register=%d\n", gpuoomshim_register_flush("keeper", give_back, idle));
    fprintf(stderr, "shim: register=%d\n", gpuoomshim_register_flush("", give_back, NULL));
}

static void unregistered(void)
{
    if (!gpuoomshim_unregister_flush)
        return;
    fprintf(stderr, "shim: unregister=%d\n", gpuoomshim_unregister_flush(give_back, idle));
    fprintf(stderr, "shim: unregister=%d\n", gpuoomshim_unregister_flush(give_back, idle));
}

int main(int count, char **words)
{
    CUdeviceptr big = 0;

    how = count > 1 ? words[1] : how;
    asker = pthread_self();
    registered();
    open_device();
    size_t at_start = free_bytes();
    for (int i = 0; i < IDLE_COUNT; i++)
        MUST(driver.mem_alloc(&idle[i], scaled(at_start, 2048)));
    if (strcmp(how, "gone") == 0)
        unregistered();
    expect("allocation beside the program's cache", driver.mem_alloc(&big, scaled(at_start, 8192)),
           CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY);
    if (strcmp(how, "gone") != 0)
        unregistered();
    fprintf(stderr, "shim: calls=%d\n", calls);
    tell_live();
    return 0;
}
