#include "fallback_free.h"

#include <stddef.h>

#include "../base/loss.h"
#include "../base/thread.h"
#include "../cuda/driver.h"
#include "../track/capture.h"
#include "../track/context.h"

static CUevent event_of(uint64_t number)
{
    return (CUevent)(uintptr_t)number;
}

/* --- freeing -----------------------------------------------------------------------------------
 */

static CUresult free_now(const struct gos_fallback_memory *memory)
{
    if (memory->way != GOS_FALLBACK_HOST)
        return gos_driver.cuMemFree(memory->address);
    return gos_driver.cuMemFreeHost((void *)(uintptr_t)memory->host);
}

static bool is_over(uint64_t event)
{
    return gos_driver.cuEventQuery(event_of(event)) != CUDA_ERROR_NOT_READY;
}

/* In relaxed mode, what is asked here harms no capture of another thread. */
static bool relax(CUstreamCaptureMode *mode)
{
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return gos_driver.cuThreadExchangeStreamCaptureMode &&
           gos_driver.cuThreadExchangeStreamCaptureMode(mode) == CUDA_SUCCESS;
}

static void unrelax(bool relaxed, CUstreamCaptureMode *mode)
{
    if (relaxed)
        gos_driver.cuThreadExchangeStreamCaptureMode(mode);
}

/* cuMemFree wants a context, and the thread at hand may have none. */
static bool enter(uint64_t context)
{
    uint32_t device;

    return gos_context_device(context, &device) && gos_driver.cuCtxPushCurrent &&
           gos_driver.cuCtxPopCurrent &&
           gos_driver.cuCtxPushCurrent((CUcontext)(uintptr_t)context) == CUDA_SUCCESS;
}

static void free_late(const struct gos_fallback_memory *memory)
{
    CUcontext popped;
    bool entered = enter(memory->context);

    gos_driver.cuEventDestroy(event_of(memory->event));
    free_now(memory);
    if (entered)
        gos_driver.cuCtxPopCurrent(&popped);
}

static void sweep(void)
{
    struct gos_fallback_memory memory;

    while (gos_fallback_take_freed(is_over, &memory))
        free_late(&memory);
}

void gos_fallback_sweep(void)
{
    CUstreamCaptureMode mode;

    if (!gos_fallback_is_used())
        return;
    gos_thread.depth++;
    bool relaxed = relax(&mode);
    sweep();
    unrelax(relaxed, &mode);
    gos_thread.depth--;
}

/* CUDA_ERROR_DEINITIALIZED: the process ends, and with it the memory. */
static void keep_if_refused(const struct gos_fallback_memory *memory, CUresult result)
{
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED && !gos_fallback_add(memory))
        gos_loss_count(GOS_LOSS_TABLE);
}

/* --- cuMemFree ---------------------------------------------------------------------------------
 */

/*
 * cuMemFree waits for the kernels that may use the memory, and hosts rely on
 * that; for pinned memory it has to be done.
 */
static CUresult free_waiting(const struct gos_fallback_memory *memory)
{
    bool pinned = memory->way == GOS_FALLBACK_HOST;

    if (pinned && gos_capture_count() == 0 && gos_driver.cuCtxSynchronize)
        gos_driver.cuCtxSynchronize();
    return free_now(memory);
}

bool gos_fallback_frees_slow(uint64_t address, CUresult *result)
{
    struct gos_fallback_memory memory;

    gos_fallback_sweep();
    if (!gos_fallback_take(address, &memory))
        return false;
    gos_thread.depth++;
    *result = free_waiting(&memory);
    gos_thread.depth--;
    keep_if_refused(&memory, *result);
    return true;
}

/* --- cuMemFreeAsync ----------------------------------------------------------------------------
 */

/* An event ends with its context. */
static bool is_current(uint64_t context)
{
    CUcontext current = NULL;

    return gos_driver.cuCtxGetCurrent && gos_driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
           (uint64_t)(uintptr_t)current == context;
}

static bool mark(CUstream stream, uint64_t *number)
{
    CUevent event;

    if (!gos_driver.cuEventCreate || !gos_driver.cuEventDestroy ||
        gos_driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return false;
    if (gos_driver.cuEventRecord(event, stream) != CUDA_SUCCESS) {
        gos_driver.cuEventDestroy(event);
        return false;
    }
    *number = (uint64_t)(uintptr_t)event;
    return true;
}

static bool put_off(const struct gos_fallback_memory *memory, CUstream stream)
{
    struct gos_fallback_memory freed = *memory;

    if (!is_current(memory->context) || !mark(stream, &freed.event))
        return false;
    if (gos_fallback_add(&freed))
        return true;
    gos_driver.cuEventDestroy(event_of(freed.event));
    return false;
}

static CUresult free_in_order(const struct gos_fallback_memory *memory, CUstream stream)
{
    if (memory->way == GOS_FALLBACK_SYNC)
        return gos_driver.cuMemFreeAsync(memory->address, stream);
    if (put_off(memory, stream)) {
        sweep();
        return CUDA_SUCCESS;
    }
    CUresult result = gos_driver.cuStreamSynchronize(stream);
    return result == CUDA_SUCCESS ? free_now(memory) : result;
}

/* A captured free is the driver's to refuse: the memory is not the graph's. */
bool gos_fallback_frees_async_slow(uint64_t address, CUstream stream, CUresult *result)
{
    struct gos_fallback_memory memory;
    CUstreamCaptureMode mode;

    gos_fallback_sweep();
    if (!gos_fallback_find(address, &memory) ||
        gos_capture_includes((uint64_t)(uintptr_t)stream, false) ||
        !gos_fallback_take(address, &memory))
        return false;
    gos_thread.depth++;
    bool relaxed = relax(&mode);
    *result = free_in_order(&memory, stream);
    unrelax(relaxed, &mode);
    gos_thread.depth--;
    keep_if_refused(&memory, *result);
    return true;
}
