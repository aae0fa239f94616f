/*
 * Virtual memory management.  The bytes belong to the physical handle; a
 * mapping and a reserved range take address space only.
 */
#include "call.h"

#include <errno.h>

#include "../recover/reserve.h"
#include "../track/allowance.h"
#include "../track/history.h"
#include "../track/unwind.h"
#include "../track/vmm.h"
#include "story.h"
#include "place.h"

static int16_t device_of(const CUmemAllocationProp *prop)
{
    bool on_device = prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     prop->location.id >= 0 && prop->location.id < GOS_DEVICE_MAX;

    return on_device ? (int16_t)prop->location.id : GOS_DEVICE_HOST;
}

static void note_created(const struct gos_call *call, CUmemGenericAllocationHandle handle)
{
    if (!gos_call_tracks())
        return;
    gos_thread.depth++;
    gos_vmm_created(&(struct gos_allocation){.address = handle,
                                             .bytes = call->bytes,
                                             .kind = GOS_KIND_PHYSICAL,
                                             .device = (uint32_t)call->device,
                                             .site = gos_unwind_site()});
    gos_history_tick();
    if (gos_reserve_is_lacking((uint32_t)call->device))
        gos_reserve_take((uint32_t)call->device, gos_place_of_context()->context);
    gos_thread.depth--;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemCreate, GOS_KIND_PHYSICAL, size);
    CUresult result;

    call.device = device_of(prop);
    do
        result = gos_call_admits(&call, handle) ? GOS_REAL(cuMemCreate)(handle, size, prop, flags)
                                                : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && handle)
        note_created(&call, *handle);
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemRetainAllocationHandle, GOS_KIND_NONE, 0);
    CUresult result;

    do
        result = GOS_REAL(cuMemRetainAllocationHandle)(handle, addr);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && handle && gos_shim_active())
        gos_vmm_retained(*handle);
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct gos_allocation gone;
    bool active = gos_shim_active();
    gos_allowance_hold();
    bool was_last = active && gos_vmm_release(handle, &gone);
    gos_free_enters();
    CUresult result = GOS_REAL(cuMemRelease)(handle);
    gos_free_left();

    if (active && result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED)
        gos_vmm_unrelease(handle, &gone, was_last);
    gos_allowance_let_go();
    return result;
}

static void note_mapped(CUdeviceptr ptr, size_t size, CUmemGenericAllocationHandle handle)
{
    int saved = errno;

    gos_thread.depth++;
    gos_vmm_mapped(ptr, size, handle, gos_unwind_site());
    if (gos_story_open)
        gos_story_mapped();
    gos_thread.depth--;
    errno = saved;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemMap, GOS_KIND_NONE, 0);
    CUresult result;

    do
        result = GOS_REAL(cuMemMap)(ptr, size, offset, handle, flags);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && gos_call_tracks())
        note_mapped(ptr, size, handle);
    return gos_call_done(&call, result);
}

/*
 * After the driver, unlike a free: the range stays reserved by its owner, so
 * nobody else can map there in between.
 */
CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    gos_free_enters();
    CUresult result = GOS_REAL(cuMemUnmap)(ptr, size);
    gos_free_left();

    if (result == CUDA_SUCCESS && gos_shim_active())
        gos_vmm_unmapped(ptr, size);
    return result;
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                     CUdeviceptr addr, unsigned long long flags)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemAddressReserve, GOS_KIND_ADDRESS, size);
    CUresult result;

    call.device = GOS_DEVICE_HOST;
    do
        result = GOS_REAL(cuMemAddressReserve)(ptr, size, alignment, addr, flags);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, result == CUDA_SUCCESS && ptr ? *ptr : 0);
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    struct gos_free free = gos_free_begin(GOS_EP_cuMemAddressFree, GOS_SPACE_RANGE, ptr);

    return gos_free_end(&free, GOS_REAL(cuMemAddressFree)(ptr, size));
}
