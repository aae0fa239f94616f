#include "fallback_free.h"

#include <stddef.h>

#include "../base/thread.h"
#include "../cuda/driver.h"
#include "../track/capture.h"

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

static void sweep(void)
{
    struct gos_fallback_memory memory;

    while (gos_fallback_take_freed(is_over, &memory)) {
        gos_driver.cuEventDestroy(event_of(memory.event));
        free_now(&memory);
    }
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

/* --- cuMemFree ---------------------------------------------------------------------------------
 */

/*
 * cuMemFree waits for the kernels that may use the memory, and hosts rely on
 * that; for pinned memory it has to be done.
 */
static CUresult free_pinned(const struct gos_fallback_memory *memory)
{
    if (gos_capture_count() == 0 && gos_driver.cuCtxSynchronize)
        gos_driver.cuCtxSynchronize();
    return free_now(memory);
}

/* Refused by the driver, it is only no longer known to be a fallback. */
bool gos_fallback_frees_slow(uint64_t address, CUresult *result)
{
    struct gos_fallback_memory memory;

    gos_fallback_sweep();
    if (!gos_fallback_take(address, &memory) || memory.way != GOS_FALLBACK_HOST)
        return false;
    gos_thread.depth++;
    *result = free_pinned(&memory);
    gos_thread.depth--;
    return true;
}

/* --- cuMemFreeAsync ----------------------------------------------------------------------------
 */

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

static CUresult free_in_order(struct gos_fallback_memory *memory, CUstream stream)
{
    if (mark(stream, &memory->event) && gos_fallback_add(memory)) {
        sweep();
        return CUDA_SUCCESS;
    }
    if (memory->event)
        gos_driver.cuEventDestroy(event_of(memory->event));
    CUresult result = gos_driver.cuStreamSynchronize(stream);
    return result == CUDA_SUCCESS ? free_now(memory) : result;
}

/* A captured free is the driver's to refuse: the memory is not the graph's. */
bool gos_fallback_frees_async_slow(uint64_t address, CUstream stream, CUresult *result)
{
    struct gos_fallback_memory memory;
    CUstreamCaptureMode mode;

    gos_fallback_sweep();
    if (!gos_fallback_find(address, &memory) || gos_capture_has((uint64_t)(uintptr_t)stream))
        return false;
    if (!gos_fallback_take(address, &memory) || memory.way == GOS_FALLBACK_SYNC)
        return false;
    gos_thread.depth++;
    bool relaxed = relax(&mode);
    *result = free_in_order(&memory, stream);
    unrelax(relaxed, &mode);
    gos_thread.depth--;
    return true;
}
