#include "context_end.h"

#include <stdatomic.h>

#include "../cuda/driver.h"
#include "../recover/reserve.h"
#include "../track/fallback.h"
#include "../track/handle_map.h"
#include "../track/pool.h"
#include "../track/vmm.h"

static _Atomic(CUcontext) primary[GOS_DEVICE_MAX];

/* Green contexts' faces and their device. */
static struct gos_handle_slot green_slots[GOS_CONTEXT_MAX];
static struct gos_handle_map greens = GOS_HANDLE_MAP_INIT(green_slots);

static uint64_t number(CUcontext context)
{
    return (uint64_t)(uintptr_t)context;
}

static bool in_range(CUdevice device)
{
    return device >= 0 && device < GOS_DEVICE_MAX;
}

struct gos_call gos_context_call(enum gos_entrypoint entry, CUdevice device)
{
    struct gos_call call = gos_call_begin(entry, GOS_KIND_NONE, 0);

    if (in_range(device))
        call.device = (int16_t)device;
    return call;
}

/* Its number may have been that of a green context that is gone. */
static void remember(CUcontext context, CUdevice device)
{
    uint64_t unused;

    if (gos_handle_map_get(&greens, number(context), &unused))
        gos_handle_map_remove(&greens, number(context));
    gos_context_seen(number(context), (uint32_t)device);
}

CUresult gos_context_made(struct gos_call *call, CUresult result, const CUcontext *context,
                          CUdevice device)
{
    if (call->rehearsed)
        gos_rehearsal_settle(call, result);
    if (result == CUDA_SUCCESS && context && gos_shim_active() && in_range(device)) {
        remember(*context, device);
        gos_rehearsal_context_made((uint32_t)device, *context);
    }
    return gos_call_done(call, result);
}

static bool lives_in(const struct gos_allocation *allocation, const void *context)
{
    return gos_home_get(allocation->home).context == (uint64_t)(uintptr_t)context;
}

void gos_context_ended(CUcontext context)
{
    uint32_t device = GOS_DEVICE_HOST;

    if (!context || !gos_shim_active())
        return;
    gos_context_device(number(context), &device);
    gos_registry_drop(lives_in, context);
    gos_vmm_arrays_ended();
    gos_fallback_context_ended(number(context));
    gos_thread.depth++;
    gos_reserve_context_ended(number(context));
    gos_thread.depth--;
    gos_context_destroyed(number(context));
    gos_rehearsal_context_ended(device);
}

void gos_primary_context_seen(CUcontext context, CUdevice device)
{
    if (in_range(device))
        atomic_store(&primary[device], context);
}

static bool lives_on_green(const struct gos_allocation *allocation, const void *device)
{
    uint64_t its_device;

    return gos_handle_map_get(&greens, gos_home_get(allocation->home).context, &its_device) &&
           its_device == (uint64_t) * (const CUdevice *)device;
}

struct wanted {
    uint64_t device;
    uint64_t found; /* context; 0: none */
};

static bool is_on(uint64_t context, uint64_t its_device, void *arg)
{
    struct wanted *wanted = arg;

    if (its_device == wanted->device)
        wanted->found = context;
    return wanted->found == 0;
}

static uint64_t any_green_on(CUdevice device)
{
    struct wanted wanted = {(uint64_t)device, 0};

    gos_handle_map_walk(&greens, is_on, &wanted);
    return wanted.found;
}

void gos_primary_context_ended(CUdevice device)
{
    uint64_t green;

    if (!in_range(device) || !gos_shim_active())
        return;
    gos_context_ended(atomic_load(&primary[device]));
    if (!any_green_on(device))
        return;
    gos_registry_drop(lives_on_green, &device);
    gos_vmm_arrays_ended();
    while ((green = any_green_on(device)) != 0) {
        gos_context_destroyed(green);
        gos_handle_map_remove(&greens, green);
    }
}

void gos_primary_context_released(CUdevice device)
{
    unsigned int flags;
    int active = 1;

    if (gos_driver.cuDevicePrimaryCtxGetState &&
        gos_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)
        gos_primary_context_ended(device);
}

void gos_green_context_seen(CUcontext context, CUdevice device)
{
    if (!in_range(device))
        return;
    gos_handle_map_put(&greens, number(context), (uint64_t)device);
    gos_context_seen(number(context), (uint32_t)device);
}
