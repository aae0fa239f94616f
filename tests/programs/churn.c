/*
 * Many threads allocate and free at once, device and stream-ordered memory;
 * at the end nothing is alive.
 *   churn [threads] [pairs per thread]
 */
#include <pthread.h>

#include "host.h"

#define KEPT 32

static CUcontext context;
static unsigned pairs = 2000;

struct slot {
    CUdeviceptr address;
    bool ordered;
};

static void empty(struct slot *slot, CUstream stream)
{
    if (slot->address == 0)
        return;
    if (slot->ordered)
        MUST(driver.mem_free_async(slot->address, stream));
    else
        MUST(driver.mem_free(slot->address));
    slot->address = 0;
}

static void fill_slot(struct slot *slot, CUstream stream, unsigned random)
{
    size_t bytes = 512 + random % 65536;
    slot->ordered = random & 1;
    if (slot->ordered)
        MUST(driver.mem_alloc_async(&slot->address, bytes, stream));
    else
        MUST(driver.mem_alloc(&slot->address, bytes));
}

static void *run(void *seed)
{
    struct slot slots[KEPT] = {0};
    CUstream stream;
    unsigned random = (unsigned)(uintptr_t)seed;

    MUST(driver.context_set(context));
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < pairs; i++) {
        random = random * 1664525u + 1013904223u;
        struct slot *slot = &slots[(random >> 20) % KEPT];
        empty(slot, stream);
        fill_slot(slot, stream, random >> 4);
    }
    for (unsigned i = 0; i < KEPT; i++)
        empty(&slots[i], stream);
    MUST(driver.stream_synchronize(stream));
    MUST(driver.stream_destroy(stream));
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[256];
    unsigned thread_count = count > 1 ? (unsigned)atoi(words[1]) : 8;

    pairs = count > 2 ? (unsigned)atoi(words[2]) : pairs;
    if (thread_count > 256)
        return 1;
    open_device();
    MUST(driver.primary_retain(&context, 0));
    for (uintptr_t i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, run, (void *)(i + 1));
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    outcome("churn", CUDA_SUCCESS);
    tell_live();
    return 0;
}
