/*
 * Memory pools.  Which device a pool is on is known when it is created or
 * asked for; the allocation calls do not say.
 */
#include "call.h"

#include "../track/handle_map.h"
#include "../track/pool.h"
#include "place.h"

static void seen(CUmemoryPool pool, struct gos_pool_info info)
{
    info.pool = (uint64_t)(uintptr_t)pool;
    gos_pool_seen(&info);
}

static uint32_t device_of(const CUmemLocation *location)
{
    bool on_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
                     location->id < GOS_DEVICE_MAX;

    return on_device ? (uint32_t)location->id : GOS_DEVICE_HOST;
}

/* CU_MEM_ALLOCATION_TYPE_MANAGED: in headers since 13.0. */
static bool is_managed(CUmemAllocationType type)
{
    return (int)type == 2;
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
        seen(*pool, (struct gos_pool_info){.device = device_of(&poolProps->location),
                                           .is_managed = is_managed(poolProps->allocType)});
    return gos_call_done(&call, result);
}

/*
 * The memory in it lives on, each piece until its own free.  What nothing is in
 * is forgotten before the driver can give its number to another thread's pool.
 */
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult result;

    if (gos_shim_active())
        gos_home_pool_ends((uint64_t)(uintptr_t)pool);
    result = GOS_REAL(cuMemPoolDestroy)(pool);
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
        seen(*pool_out,
             (struct gos_pool_info){.device = gos_place_of_context()->device, .imported = true});
    return gos_call_done(&call, result);
}

/* --- the pools of a device ---------------------------------------------------------------------
 */

static CUresult got(CUresult result, const CUmemoryPool *pool, struct gos_pool_info info)
{
    if (result == CUDA_SUCCESS && pool && gos_shim_active())
        seen(*pool, info);
    return result;
}

static struct gos_pool_info on_device(CUdevice device)
{
    bool fits = device >= 0 && device < GOS_DEVICE_MAX;

    return (struct gos_pool_info){.device = fits ? (uint32_t)device : GOS_DEVICE_HOST};
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    return got(GOS_REAL(cuDeviceGetMemPool)(pool, dev), pool, on_device(dev));
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    struct gos_pool_info info = on_device(dev);

    info.is_default = true;
    return got(GOS_REAL(cuDeviceGetDefaultMemPool)(pool_out, dev), pool_out, info);
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

static struct gos_pool_info at(const CUmemLocation *location, CUmemAllocationType type)
{
    return (struct gos_pool_info){.device = location ? device_of(location) : GOS_DEVICE_HOST,
                                  .is_managed = is_managed(type)};
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                 CUmemAllocationType type)
{
    return got(GOS_REAL(cuMemGetMemPool)(pool, location, type), pool, at(location, type));
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                        CUmemAllocationType type)
{
    struct gos_pool_info info = at(location, type);

    info.is_default = true;
    return got(GOS_REAL(cuMemGetDefaultMemPool)(pool_out, location, type), pool_out, info);
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                 CUmemoryPool pool)
{
    return changed(GOS_REAL(cuMemSetMemPool)(location, type, pool));
}
