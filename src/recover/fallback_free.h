/*
 * Freeing what stands in for device memory (GPUOOMSHIM_FALLBACK) with whatever
 * free the host calls.
 *
 * cuMemFreeAsync takes neither managed nor pinned memory.  For it the free
 * keeps its place in the stream: an event is recorded there, the host goes on,
 * and the memory is freed at the first free or fallback after the event has
 * come to pass; that free may then wait for kernels on other streams, as each
 * cuMemFree may.  Only where no event is to be had is the stream waited for:
 * also if it is of another context than the memory, which may outlive the event.
 *
 * Hook context; raises gos_thread.depth itself.
 */
#ifndef GOS_RECOVER_FALLBACK_FREE_H
#define GOS_RECOVER_FALLBACK_FREE_H

#include <stdbool.h>
#include <stdint.h>

#include "../cuda/cuda_types.h"
#include "../track/fallback.h"

bool gos_fallback_frees_slow(uint64_t address, CUresult *result);
bool gos_fallback_frees_async_slow(uint64_t address, CUstream stream, CUresult *result);

static inline bool gos_fallback_is_used(void)
{
    return __builtin_expect(atomic_load_explicit(&gos_fallback_count, memory_order_relaxed) > 0, 0);
}

/*
 * For cuMemFree: true when the driver was asked here, false when it is no
 * fallback.  What the driver refuses stays a fallback, to be freed again.
 */
static inline bool gos_fallback_frees(uint64_t address, CUresult *result)
{
    return gos_fallback_is_used() && gos_fallback_frees_slow(address, result);
}

/*
 * For cuMemFreeAsync, likewise; the stream as the driver's default ABI takes it.
 * False also while the stream is captured: then the driver refuses.
 */
static inline bool gos_fallback_frees_async(uint64_t address, CUstream stream, CUresult *result)
{
    return gos_fallback_is_used() && gos_fallback_frees_async_slow(address, stream, result);
}

/* The host frees it as the pinned memory that it is. */
static inline void gos_fallback_forget(uint64_t address)
{
    struct gos_fallback_memory unused;

    if (gos_fallback_is_used())
        gos_fallback_take(address, &unused);
}

/* Free what the host has freed already, as far as its time has come. */
void gos_fallback_sweep(void);

#endif
