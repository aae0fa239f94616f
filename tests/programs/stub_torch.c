/*
 * A stand-in for torch's allocator, in a library of the same name, so that the
 * stacks are honest: it takes segments, keeps the idle ones, frees them when
 * it needs memory itself, and does all that under one lock.  Built with
 * STUB_TORCH_1 or _2 it tells of itself as torch does (stub_words.h).
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "stub_torch.h"
#include "stub_words.h"

#define SEGMENT_MAX 64
#define HANDLE_BYTES ((size_t)20 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment {
    void *memory;
    size_t bytes;
    size_t used_bytes; /* from its beginning on; 0: idle */
    bool is_expandable;
} segments[SEGMENT_MAX];

static enum stub_torch_way way;
static size_t limit_bytes; /* 0: none */

static void unlock(pthread_mutex_t **held)
{
    pthread_mutex_unlock(*held);
}

/* Given back on every way out, exceptions among them. */
#define LOCKED                                                                                     \
    pthread_mutex_t *held __attribute__((cleanup(unlock))) = &lock;                                \
    pthread_mutex_lock(held)

static size_t allocated(void)
{
    size_t sum = 0;
    for (int i = 0; i < SEGMENT_MAX; i++)
        sum += segments[i].memory ? segments[i].used_bytes : 0;
    return sum;
}

static size_t reserved(void)
{
    size_t sum = 0;
    for (int i = 0; i < SEGMENT_MAX; i++)
        sum += segments[i].memory ? segments[i].bytes : 0;
    return sum;
}

/* --- expandable segments: handles of 20 MiB ------------------------------------------------- */

/* As torch finds them: by name, past what its runtime offers. */
#define DRIVER(function) ((__typeof__(&function))driver(#function))

static void *driver(const char *name)
{
    static void *library;

    library = library ? library : dlopen("libcuda.so.1", RTLD_NOW);
    return dlsym(library, name);
}

static void drop_handles(CUdeviceptr at, size_t count)
{
    if (count)
        DRIVER(cuMemUnmap)(at, count * HANDLE_BYTES);
}

static cudaError_t map_handles(CUdeviceptr at, size_t count)
{
    CUmemAllocationProp where = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

    for (size_t i = 0; i < count; i++) {
        CUmemGenericAllocationHandle handle;
        CUresult result = DRIVER(cuMemCreate)(&handle, HANDLE_BYTES, &where, 0);
        if (result == CUDA_SUCCESS) {
            result = DRIVER(cuMemMap)(at + i * HANDLE_BYTES, HANDLE_BYTES, 0, handle, 0);
            DRIVER(cuMemRelease)(handle);
        }
        if (result != CUDA_SUCCESS) {
            drop_handles(at, i);
            return cudaErrorMemoryAllocation;
        }
    }
    return cudaSuccess;
}

static cudaError_t expand(struct segment *segment, size_t bytes)
{
    size_t count = (bytes + HANDLE_BYTES - 1) / HANDLE_BYTES;
    CUdeviceptr at = 0;

    if (DRIVER(cuMemAddressReserve)(&at, count * HANDLE_BYTES, 0, 0, 0) != CUDA_SUCCESS)
        return cudaErrorMemoryAllocation;
    cudaError_t result = map_handles(at, count);
    if (result != cudaSuccess)
        DRIVER(cuMemAddressFree)(at, count * HANDLE_BYTES);
    segment->memory = (void *)(uintptr_t)at;
    return result;
}

static void shrink(const struct segment *segment)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)segment->memory;
    size_t count = (segment->bytes + HANDLE_BYTES - 1) / HANDLE_BYTES;

    drop_handles(at, count);
    DRIVER(cuMemAddressFree)(at, count * HANDLE_BYTES);
}

/* --- segments --------------------------------------------------------------------------------- */

static int free_idle(void)
{
    int freed = 0;
    for (int i = 0; i < SEGMENT_MAX; i++) {
        if (!segments[i].memory || segments[i].used_bytes)
            continue;
        if (segments[i].is_expandable)
            shrink(&segments[i]);
        else
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
    if (i == SEGMENT_MAX || (limit_bytes && reserved() + bytes > limit_bytes))
        return cudaErrorMemoryAllocation;
    cudaError_t result = way == STUB_TORCH_EXPANDABLE ? expand(&segments[i], bytes)
                                                      : cudaMalloc(&segments[i].memory, bytes);
    if (result != cudaSuccess)
        segments[i].memory = NULL;
    segments[i].bytes = bytes;
    segments[i].used_bytes = bytes;
    segments[i].is_expandable = way == STUB_TORCH_EXPANDABLE;
    *number = i;
    return (int)result;
}

/* In a capture nothing is freed; without a cache there is nothing to free. */
static int take_or_free(int *number, size_t bytes)
{
    int result = take(number, bytes);
    if (result != cudaErrorMemoryAllocation || way == STUB_TORCH_UNCACHED)
        return result;
    cudaGetLastError();
    if (way == STUB_TORCH_CAPTURING)
        return result;
    free_idle();
    return take(number, bytes);
}

int stub_torch_need(int *number, size_t bytes)
{
    LOCKED;
    int result = take_or_free(number, bytes);
    if (way == STUB_TORCH_UNCACHED)
        return result;
    if (result == cudaErrorMemoryAllocation)
        tell_refusal(bytes, allocated(), reserved());
    else if (result == cudaSuccess)
        tell_block(segments[*number].memory, (int64_t)bytes, allocated(), reserved());
    return result;
}

struct need {
    int *number;
    size_t bytes;
};

static int need(void *arg)
{
    const struct need *asked = arg;
    return stub_torch_need(asked->number, asked->bytes);
}

int stub_torch_take(int *number, size_t bytes)
{
    return try_to(need, &(struct need){number, bytes}, cudaErrorMemoryAllocation);
}

/* The block is freed, and one of the rest handed out. */
void stub_torch_use(int number, size_t bytes)
{
    LOCKED;
    struct segment *segment = &segments[number];
    int64_t before = (int64_t)segment->used_bytes;
    segment->used_bytes = 0;
    if (before && way != STUB_TORCH_UNCACHED)
        tell_block(segment->memory, -before, allocated(), reserved());
    segment->used_bytes = bytes;
    if (bytes && way != STUB_TORCH_UNCACHED)
        tell_block(segment->memory, (int64_t)bytes, allocated(), reserved());
}

void stub_torch_give(int number)
{
    stub_torch_use(number, 0);
}

void *stub_torch_look(int number, size_t *bytes, size_t *used_bytes)
{
    LOCKED;
    void *memory = number < SEGMENT_MAX ? segments[number].memory : NULL;
    if (memory) {
        *bytes = segments[number].bytes;
        *used_bytes = segments[number].used_bytes;
    }
    return memory;
}

int stub_torch_empty_cache(void)
{
    LOCKED;
    return free_idle();
}

void stub_torch_sit(unsigned ms)
{
    LOCKED;
    usleep(ms * 1000);
}

void stub_torch_go(enum stub_torch_way chosen)
{
    LOCKED;
    way = chosen;
}

void stub_torch_limit(size_t bytes)
{
    LOCKED;
    limit_bytes = bytes;
}

static void *pinned;

int stub_torch_pin(size_t bytes)
{
    LOCKED;
    return (int)cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault);
}

int stub_torch_empty_host_cache(void)
{
    LOCKED;
    int result = (int)cudaFreeHost(pinned);
    pinned = NULL;
    return result;
}
