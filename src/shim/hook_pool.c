/*
 * Memory pools.  Which device a pool is on is known when it is created or
 * asked for; the allocation calls do not say.
 */
#include "call.h"

#include "../track/handle_map.h"
#include "../track/pool.h"
#include "place.h"

static void seen(CUmemoryPool pool, uint32_t device, bool is_default, bool imported)
{
    gos_pool_seen(&(struct gos_pool_info){.pool = (uint64_t)(uintptr_t)pool,
                                          .device = device,
                                          .is_default = is_default,
                                          .imported = imported});
}

static uint32_t device_of(const CUmemLocation *location)
{
    bool on_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
                     location->id < GOS_DEVICE_MAX;

    return on_device ? (uint32_t)location->id : GOS_DEVICE_HOST;
}

/* A pool itself takes no memory before the first allocation from it. */
CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemPoolCreate, GOS_KIND_NONE, 0);
    CUresult result;

    do
        result = GOS_REAL(cuMemPoolCreate)(pool, poolProps);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && pool && poolProps && gos_shim_active())
        seen(*pool, device_of(&poolProps->location), false, false);
    return gos_call_done(&call, result);
}

/* The memory in it lives on, each piece until its own free. */
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult result = GOS_REAL(cuMemPoolDestroy)(pool);

    if (result == CUDA_SUCCESS && gos_shim_active())
        gos_pool_destroyed((uint64_t)(uintptr_t)pool);
    return result;
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                    CUmemAllocationHandleType handleType,
                                                    unsigned long long flags)
{
    struct gos_call call =
        gos_call_begin(GOS_EP_cuMemPoolImportFromShareableHandle, GOS_KIND_NONE, 0);
    CUresult result;

    do
        result = GOS_REAL(cuMemPoolImportFromShareableHandle)(pool_out, handle, handleType, flags);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && pool_out && gos_shim_active())
        seen(*pool_out, gos_place_of_context()->device, false, true);
    return gos_call_done(&call, result);
}

/* --- the pools of a device ---------------------------------------------------------------------
 */

static CUresult got(CUresult result, const CUmemoryPool *pool, const CUmemLocation *location,
                    bool is_default)
{
    if (result == CUDA_SUCCESS && pool && location && gos_shim_active())
        seen(*pool, device_of(location), is_default, false);
    return result;
}

static CUmemLocation on_device(CUdevice device)
{
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    CUmemLocation location = on_device(dev);

    return got(GOS_REAL(cuDeviceGetMemPool)(pool, dev), pool, &location, false);
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    CUmemLocation location = on_device(dev);

    return got(GOS_REAL(cuDeviceGetDefaultMemPool)(pool_out, dev), pool_out, &location, true);
}

/* Streams of the device allocate from another pool now: what threads remembered is stale. */
static CUresult changed(CUresult result)
{
    if (result == CUDA_SUCCESS && gos_shim_active())
        gos_handle_invalidate();
    return result;
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    return changed(GOS_REAL(cuDeviceSetMemPool)(dev, pool));
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                 CUmemAllocationType type)
{
    return got(GOS_REAL(cuMemGetMemPool)(pool, location, type), pool, location, false);
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                        CUmemAllocationType type)
{
    return got(GOS_REAL(cuMemGetDefaultMemPool)(pool_out, location, type), pool_out, location,
               true);
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                 CUmemoryPool pool)
{
    return changed(GOS_REAL(cuMemSetMemPool)(location, type, pool));
}
#endif
