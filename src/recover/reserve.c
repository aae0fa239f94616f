#include "reserve.h"

#include "../base/hot.h"
#include "../base/log.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../base/thread.h"
#include "../cuda/driver.h"
#include "../cuda/relaxed.h"
#include "../track/allowance.h"
#include "../track/capture.h"
#include "../track/held.h"
#include "../track/registry.h"

#define BLOCK_BYTES (2ull << 20)
#define MARGIN_LEAST_BYTES (256ull << 20)
#define PAUSE_NS 1000000000u

/* BUSY: one thread is taking it or giving it up; others do without. */
enum { ABSENT, BUSY, HELD };

static struct {
    _Atomic uint32_t state;
    /* Of the thread that made it BUSY. */
    CUmemGenericAllocationHandle handle;
    uint64_t bytes;
    _Atomic uint64_t context; /* also read by who ends contexts */
    _Atomic uint64_t not_before_ns;
    bool was_tried;
    bool is_booked; /* its bytes count against GPUOOMSHIM_LIMIT */
} reserves[GOS_DEVICE_MAX];

GOS_READ_MOSTLY _Atomic uint64_t gos_reserve_lacking;

void gos_reserve_start(void)
{
    if (gos_options.reserve > 0 && gos_options.retry)
        atomic_store(&gos_reserve_lacking, (1ull << GOS_DEVICE_MAX) - 1);
}

static void set_lacking(uint32_t device, bool lacking)
{
    if (lacking)
        atomic_fetch_or(&gos_reserve_lacking, 1ull << device);
    else
        atomic_fetch_and(&gos_reserve_lacking, ~(1ull << device));
}

static bool change(uint32_t device, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&reserves[device].state, &from, to);
}

static void book(uint32_t device, bool held)
{
    if (held != reserves[device].is_booked)
        gos_allowance_book(GOS_KIND_PHYSICAL, device, 0, reserves[device].bytes, held);
    reserves[device].is_booked = held;
}

static void settle(uint32_t device, uint32_t state)
{
    book(device, state == HELD);
    gos_held_set(device, state == HELD ? reserves[device].bytes : 0);
    atomic_store(&reserves[device].not_before_ns, gos_os.monotonic_ns() + PAUSE_NS);
    set_lacking(device, state == ABSENT);
    atomic_store(&reserves[device].state, state);
}

static uint64_t wanted_bytes(void)
{
    return (gos_options.reserve + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

static bool is_current(uint32_t device)
{
    CUdevice current = -1;

    return gos_driver.cuCtxGetDevice && gos_driver.cuCtxGetDevice(&current) == CUDA_SUCCESS &&
           current == (CUdevice)device;
}

static bool may_take(uint32_t device)
{
    return device < GOS_DEVICE_MAX && !gos_thread.is_helper && gos_capture_count() == 0 &&
           gos_os.monotonic_ns() >= atomic_load(&reserves[device].not_before_ns) &&
           is_current(device);
}

static bool has_room(uint64_t bytes)
{
    uint64_t margin_bytes = bytes > MARGIN_LEAST_BYTES ? bytes : MARGIN_LEAST_BYTES;
    uint64_t free_bytes = gos_driver_free_bytes();

    return free_bytes >= bytes && free_bytes - bytes >= margin_bytes;
}

static CUresult create(uint32_t device, uint64_t bytes)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)device},
    };

    if (!gos_driver.cuMemCreate || !gos_driver.cuMemRelease)
        return CUDA_ERROR_NOT_SUPPORTED;
    reserves[device].bytes = bytes;
    return gos_driver.cuMemCreate(&reserves[device].handle, bytes, &prop, 0);
}

/* Within what GPUOOMSHIM_LIMIT allows. */
static CUresult create_allowed(uint32_t device, uint64_t bytes)
{
    if (!gos_allowance_limit(device))
        return create(device, bytes);
    if (!gos_allowance_reserve(device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = create(device, bytes);
    book(device, result == CUDA_SUCCESS);
    gos_allowance_release(device, bytes);
    return result;
}

static void complain(uint32_t device, uint64_t bytes, CUresult result)
{
    char size[32];
    struct gos_text text = gos_text_on(size, sizeof size);

    gos_text_bytes(&text, bytes);
    gos_log(GOS_LOG_NOTICE, "GPUOOMSHIM_RESERVE: %s of GPU %u could not be held back (error %d)",
            size, device, (int)result);
}

static CUresult create_relaxed(uint32_t device, uint64_t bytes)
{
    struct gos_relaxed relaxed;

    gos_relaxed_begin(&relaxed);
    CUresult result = create_allowed(device, bytes);
    gos_relaxed_end(&relaxed);
    return result;
}

void gos_reserve_take(uint32_t device, uint64_t context)
{
    uint64_t bytes = wanted_bytes();
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (!may_take(device) || !change(device, ABSENT, BUSY))
        return;
    bool is_first = !reserves[device].was_tried;
    reserves[device].was_tried = true;
    if (is_first || has_room(bytes))
        result = create_relaxed(device, bytes);
    if (is_first && result != CUDA_SUCCESS)
        complain(device, bytes, result);
    if (result == CUDA_SUCCESS)
        atomic_store(&reserves[device].context, context);
    settle(device, result == CUDA_SUCCESS ? HELD : ABSENT);
}

int gos_reserve_give_up(uint32_t device, uint64_t *bytes)
{
    *bytes = 0;
    if (device >= GOS_DEVICE_MAX || !change(device, HELD, BUSY))
        return CUDA_SUCCESS;
    CUresult result = gos_driver.cuMemRelease(reserves[device].handle);
    if (result == CUDA_SUCCESS)
        *bytes = reserves[device].bytes;
    settle(device, result == CUDA_SUCCESS ? ABSENT : HELD);
    return (int)result;
}

void gos_reserve_context_ended(uint64_t context)
{
    uint64_t bytes;

    for (uint32_t device = 0; gos_options.reserve > 0 && device < GOS_DEVICE_MAX; device++)
        if (atomic_load(&reserves[device].context) == context)
            gos_reserve_give_up(device, &bytes);
}

/* The parent's memory stays the parent's, and the child's driver does not work. */
void gos_reserve_reset_after_fork(void)
{
    atomic_store(&gos_reserve_lacking, 0);
    for (uint32_t device = 0; device < GOS_DEVICE_MAX; device++) {
        atomic_store(&reserves[device].state, BUSY);
        gos_held_set(device, 0);
    }
}
