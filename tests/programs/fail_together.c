/*
 * Many threads run out of memory in the same moment.
 *   fail_together [threads]
 */
#include <pthread.h>

#include "host.h"

static CUcontext context;
static pthread_barrier_t start;
static size_t bytes;

static void *ask(void *answer)
{
    CUdeviceptr refused = 0;
    MUST(driver.context_set(context));
    pthread_barrier_wait(&start);
    *(CUresult *)answer = driver.mem_alloc(&refused, bytes);
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[256];
    CUresult answers[256];
    CUdeviceptr live;
    unsigned thread_count = count > 1 ? (unsigned)atoi(words[1]) : 64;

    if (thread_count > 256)
        return 1;
    open_device();
    MUST(driver.primary_retain(&context, 0));
    size_t at_start = free_bytes();
    MUST(driver.mem_alloc(&live, scaled(at_start, 12288)));
    bytes = scaled(at_start, 8192);
    pthread_barrier_init(&start, NULL, thread_count);
    for (unsigned i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, ask, &answers[i]);
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < thread_count; i++)
        expect("one of many", answers[i], CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}
