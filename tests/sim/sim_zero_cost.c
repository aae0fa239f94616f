#include "sim_zero_cost.h"

#include <stdatomic.h>
#include <stdint.h>

/* Each thread walks round in its own window of the 47-bit address space. */
#define WINDOW_BYTES (UINT64_C(1) << 40)
#define WINDOWS 127u

static _Atomic unsigned last_window;
static _Thread_local uint64_t cursor, limit;

static uint64_t refill(uint64_t bytes)
{
    if (bytes > WINDOW_BYTES)
        return 0;
    if (limit == 0)
        limit = (atomic_fetch_add(&last_window, 1) % WINDOWS + 2) * WINDOW_BYTES;
    return limit - WINDOW_BYTES;
}

CUresult sim_zero_cost_take(CUdeviceptr *address, size_t bytes)
{
    uint64_t base = cursor;
    if (bytes > limit - base)
        base = refill(bytes);
    if (base == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    cursor = base + ((bytes + 511) & ~(uint64_t)511);
    *address = base;
    return CUDA_SUCCESS;
}
