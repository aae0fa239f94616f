/*
 * The same memory through a linked libcudart, whose last error must be the one
 * that it would have without the shim.  Slots are shared with the driver's
 * steps, so memory is made by the one and freed by the other.
 */
#include <cuda_runtime_api.h>

#include "diff_world.h"

static struct diff_memory *slot_of(const struct diff_step *step)
{
    return &world.memories[diff_slot(step->a, DIFF_MEMORIES)];
}

/* The runtime makes a primary context current where there was none. */
static void note_context(int thread)
{
    CUcontext context = NULL;

    if (cu.context_get(&context) != CUDA_SUCCESS || context == NULL)
        return;
    for (int i = 0; i < DIFF_CONTEXTS; i++)
        if (world.contexts[i].handle == context)
            world.current[thread] = i;
}

static void tell_errors(const struct diff_step *step)
{
    diff_say(" peek %d", (int)cudaPeekAtLastError());
    if (step->c % 2 == 0)
        diff_say(" last %d", (int)cudaGetLastError());
}

static struct diff_memory here(const struct diff_step *step, enum diff_family family,
                               uint64_t bytes)
{
    note_context(step->thread);
    int context = world.current[step->thread];

    return (struct diff_memory){
        .family = family,
        .bytes = bytes,
        .context = family == DIFF_POOLED || family == DIFF_GRAPH ? DIFF_NO_CONTEXT : context,
        .device =
            family == DIFF_HOST || context == DIFF_NO_CONTEXT ? -1 : world.contexts[context].device,
    };
}

static void made(const struct diff_step *step, cudaError_t result, void *address,
                 enum diff_family family, uint64_t bytes)
{
    struct diff_memory memory = here(step, family, bytes);

    memory.address = (CUdeviceptr)(uintptr_t)address;
    diff_made((CUresult)result, slot_of(step), memory);
    tell_errors(step);
}

static bool is_empty(const struct diff_step *step)
{
    return slot_of(step)->family == DIFF_NOTHING;
}

static void alloc(const struct diff_step *step)
{
    void *address = NULL;

    if (is_empty(step)) {
        cudaError_t result = cudaMalloc(&address, (size_t)step->b);
        made(step, result, address, DIFF_DEVICE, (uint64_t)step->b);
    }
}

static void managed(const struct diff_step *step)
{
    void *address = NULL;

    if (is_empty(step)) {
        cudaError_t result = cudaMallocManaged(&address, (size_t)step->b, cudaMemAttachGlobal);
        made(step, result, address, DIFF_MANAGED, (uint64_t)step->b);
    }
}

static void pitch(const struct diff_step *step)
{
    void *address = NULL;
    size_t row = 0;

    if (is_empty(step)) {
        cudaError_t result = cudaMallocPitch(&address, &row, (size_t)step->b, 16);
        diff_say(" pitch %zu", row);
        made(step, result, address, DIFF_DEVICE, row * 16);
    }
}

static void host(const struct diff_step *step)
{
    void *address = NULL;

    if (is_empty(step)) {
        cudaError_t result = cudaMallocHost(&address, (size_t)step->b);
        made(step, result, address, DIFF_HOST, (uint64_t)step->b);
    }
}

static void alloc_async(const struct diff_step *step)
{
    int stream = diff_slot(step->c, DIFF_STREAMS);
    bool is_stream = stream >= 2 && world.streams[stream].handle != NULL;
    void *address = NULL;

    if (!is_empty(step) || world.streams[stream].in_capture)
        return;
    cudaError_t result = cudaMallocAsync(&address, (size_t)step->b, diff_stream_of(step->c));
    made(step, result, address, DIFF_POOLED, (uint64_t)step->b);
    if (is_stream && slot_of(step)->family == DIFF_POOLED)
        slot_of(step)->device = world.contexts[world.streams[stream].context].device;
}

static void free_one(const struct diff_step *step)
{
    const struct diff_memory *memory = slot_of(step);
    CUdeviceptr address = memory->address;

    if (memory->family == DIFF_NOTHING || memory->family == DIFF_ARRAY ||
        memory->family == DIFF_REGISTERED)
        return;
    cudaError_t result = memory->family == DIFF_HOST ? cudaFreeHost((void *)(uintptr_t)address)
                                                     : cudaFree((void *)(uintptr_t)address);
    note_context(step->thread);
    diff_gone((CUresult)result, address);
    tell_errors(step);
}

static void free_async(const struct diff_step *step)
{
    const struct diff_memory *memory = slot_of(step);
    CUdeviceptr address = memory->address;
    bool captured = world.streams[diff_slot(step->b, DIFF_STREAMS)].in_capture;

    if (captured || (memory->family != DIFF_POOLED && memory->family != DIFF_DEVICE &&
                     memory->family != DIFF_MANAGED))
        return;
    cudaError_t result = cudaFreeAsync((void *)(uintptr_t)address, diff_stream_of(step->b));
    note_context(step->thread);
    diff_gone((CUresult)result, address);
    tell_errors(step);
}

const struct diff_operation diff_runtime_operations[] = {
    {"rt_alloc", alloc},
    {"rt_managed", managed},
    {"rt_pitch", pitch},
    {"rt_host", host},
    {"rt_alloc_async", alloc_async},
    {"rt_free", free_one},
    {"rt_free_async", free_async},
    {NULL, NULL},
};
