/*
 * A stand-in for torch's allocator, in a library of the same name, so that the
 * stacks are honest: it takes segments, keeps the idle ones, frees them when
 * it needs memory itself, and does all that under one lock.
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "stub_torch.h"

#define SEGMENT_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *memory;
    size_t bytes;
    size_t used_bytes; /* from its beginning on; 0: idle */
} segments[SEGMENT_MAX];

static int free_idle(void)
{
    int freed = 0;
    for (int i = 0; i < SEGMENT_MAX; i++) {
        if (!segments[i].memory || segments[i].used_bytes)
            continue;
        cudaFree(segments[i].memory);
        segments[i].memory = NULL;
        freed++;
    }
    return freed;
}

static int take(int *number, size_t bytes)
{
    int i = 0;
    while (i < SEGMENT_MAX && segments[i].memory)
        i++;
    if (i == SEGMENT_MAX)
        return cudaErrorMemoryAllocation;
    cudaError_t result = cudaMalloc(&segments[i].memory, bytes);
    if (result != cudaSuccess)
        segments[i].memory = NULL;
    segments[i].bytes = bytes;
    segments[i].used_bytes = bytes;
    *number = i;
    return (int)result;
}

int stub_torch_take(int *number, size_t bytes)
{
    pthread_mutex_lock(&lock);
    int result = take(number, bytes);
    if (result == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        free_idle();
        result = take(number, bytes);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void stub_torch_use(int number, size_t bytes)
{
    pthread_mutex_lock(&lock);
    segments[number].used_bytes = bytes;
    pthread_mutex_unlock(&lock);
}

void stub_torch_give(int number)
{
    stub_torch_use(number, 0);
}

void *stub_torch_look(int number, size_t *bytes, size_t *used_bytes)
{
    pthread_mutex_lock(&lock);
    void *memory = number < SEGMENT_MAX ? segments[number].memory : NULL;
    if (memory) {
        *bytes = segments[number].bytes;
        *used_bytes = segments[number].used_bytes;
    }
    pthread_mutex_unlock(&lock);
    return memory;
}

int stub_torch_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    int freed = free_idle();
    pthread_mutex_unlock(&lock);
    return freed;
}

void stub_torch_sit(unsigned ms)
{
    pthread_mutex_lock(&lock);
    usleep(ms * 1000);
    pthread_mutex_unlock(&lock);
}

static void *pinned;

int stub_torch_pin(size_t bytes)
{
    pthread_mutex_lock(&lock);
    int result = (int)cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault);
    pthread_mutex_unlock(&lock);
    return result;
}

int stub_torch_empty_host_cache(void)
{
    pthread_mutex_lock(&lock);
    int result = (int)cudaFreeHost(pinned);
    pinned = NULL;
    pthread_mutex_unlock(&lock);
    return result;
}
