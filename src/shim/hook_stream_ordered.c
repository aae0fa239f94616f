/*
 * Stream-ordered memory and its pools.  The cheapest calls that we hook: no
 * synchronization, no question to the driver that the thread has asked before.
 */
#include "call.h"

#include "../track/handle_map.h"
#include "../track/pool.h"

static uint64_t written(const CUdeviceptr *pointer, CUresult result)
{
    return result == CUDA_SUCCESS && pointer ? *pointer : 0;
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct gos_call call =
        gos_call_begin_async(GOS_EP_cuMemAllocAsync, bytesize, hStream, NULL, false);
    CUresult result;

    do
        result = GOS_REAL(cuMemAllocAsync)(dptr, bytesize, hStream);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct gos_call call =
        gos_call_begin_async(GOS_EP_cuMemAllocAsync_ptsz, bytesize, hStream, NULL, true);
    CUresult result;

    do
        result = GOS_REAL(cuMemAllocAsync_ptsz)(dptr, bytesize, hStream);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                         CUstream hStream)
{
    struct gos_call call =
        gos_call_begin_async(GOS_EP_cuMemAllocFromPoolAsync, bytesize, hStream, pool, false);
    CUresult result;

    do
        result = GOS_REAL(cuMemAllocFromPoolAsync)(dptr, bytesize, pool, hStream);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize,
                                              CUmemoryPool pool, CUstream hStream)
{
    struct gos_call call =
        gos_call_begin_async(GOS_EP_cuMemAllocFromPoolAsync_ptsz, bytesize, hStream, pool, true);
    CUresult result;

    do
        result = GOS_REAL(cuMemAllocFromPoolAsync_ptsz)(dptr, bytesize, pool, hStream);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct gos_free free = gos_free_begin(GOS_EP_cuMemFreeAsync, GOS_SPACE_ADDRESS, dptr);
    CUresult result = GOS_REAL(cuMemFreeAsync)(dptr, hStream);

    return gos_free_end_async(&free, result, hStream, false);
}

CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    struct gos_free free = gos_free_begin(GOS_EP_cuMemFreeAsync_ptsz, GOS_SPACE_ADDRESS, dptr);
    CUresult result = GOS_REAL(cuMemFreeAsync_ptsz)(dptr, hStream);

    return gos_free_end_async(&free, result, hStream, true);
}

/* A pool itself takes no memory before the first allocation from it. */
CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemPoolCreate, GOS_KIND_NONE, 0);
    CUresult result;

    do
        result = GOS_REAL(cuMemPoolCreate)(pool, poolProps);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && pool && poolProps && gos_shim_active() &&
        poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        gos_pool_seen(&(struct gos_pool_info){.pool = (uint64_t)(uintptr_t)*pool,
                                              .device = (uint32_t)poolProps->location.id});
    return gos_call_done(&call, result);
}

static bool lives_in_pool(const struct gos_allocation *allocation, const void *pool)
{
    return allocation->kind == GOS_KIND_POOL &&
           gos_home_get(allocation->home).pool == (uint64_t)(uintptr_t)pool;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult result = GOS_REAL(cuMemPoolDestroy)(pool);

    if (result == CUDA_SUCCESS && gos_shim_active()) {
        gos_registry_drop(lives_in_pool, pool);
        gos_pool_destroyed((uint64_t)(uintptr_t)pool);
    }
    return result;
}

/* Streams of the device allocate from another pool now: what threads remembered is stale. */
CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    CUresult result = GOS_REAL(cuDeviceSetMemPool)(dev, pool);

    if (result == CUDA_SUCCESS && gos_shim_active())
        gos_handle_invalidate();
    return result;
}
