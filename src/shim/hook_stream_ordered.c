/*
 * Stream-ordered memory.  The cheapest calls that we hook: no
 * synchronization, no question to the driver that the thread has asked before.
 */
#include "call.h"

#include "../base/hot.h"
#include "../recover/fallback_free.h"

static uint64_t written(const CUdeviceptr *pointer, CUresult result)
{
    return result == CUDA_SUCCESS && pointer ? *pointer : 0;
}

GOS_HOT CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct gos_call call = gos_call_replaceable(
        gos_call_begin_async(GOS_EP_cuMemAllocAsync, bytesize, hStream, NULL, false));
    CUresult result;

    do
        result =
            gos_call_goes_on(&call, dptr)
                ? gos_call_keep(&call, GOS_REAL(cuMemAllocAsync)(dptr, bytesize, hStream), dptr)
                : gos_call_answer(&call, dptr);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

GOS_HOT CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct gos_call call = gos_call_replaceable(
        gos_call_begin_async(GOS_EP_cuMemAllocAsync_ptsz, bytesize, hStream, NULL, true));
    CUresult result;

    do
        result = gos_call_goes_on(&call, dptr)
                     ? gos_call_keep(&call, GOS_REAL(cuMemAllocAsync_ptsz)(dptr, bytesize, hStream),
                                     dptr)
                     : gos_call_answer(&call, dptr);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                         CUstream hStream)
{
    struct gos_call call = gos_call_replaceable(
        gos_call_begin_async(GOS_EP_cuMemAllocFromPoolAsync, bytesize, hStream, pool, false));
    CUresult result;

    do
        result =
            gos_call_goes_on(&call, dptr)
                ? gos_call_keep(
                      &call, GOS_REAL(cuMemAllocFromPoolAsync)(dptr, bytesize, pool, hStream), dptr)
                : gos_call_answer(&call, dptr);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                              CUstream hStream)
{
    struct gos_call call = gos_call_replaceable(
        gos_call_begin_async(GOS_EP_cuMemAllocFromPoolAsync_ptsz, bytesize, hStream, pool, true));
    CUresult result;

    do
        result =
            gos_call_goes_on(&call, dptr)
                ? gos_call_keep(
                      &call, GOS_REAL(cuMemAllocFromPoolAsync_ptsz)(dptr, bytesize, pool, hStream),
                      dptr)
                : gos_call_answer(&call, dptr);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

GOS_HOT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct gos_free free;
    CUresult result;

    gos_free_begin_in(&free, GOS_EP_cuMemFreeAsync, GOS_SPACE_ADDRESS, dptr);
    if (!gos_fallback_frees_async(dptr, hStream, &result))
        result = GOS_REAL(cuMemFreeAsync)(dptr, hStream);
    return gos_free_end_async(&free, result, hStream, false);
}

GOS_HOT CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    struct gos_free free;
    CUresult result;

    gos_free_begin_in(&free, GOS_EP_cuMemFreeAsync_ptsz, GOS_SPACE_ADDRESS, dptr);
    if (!gos_fallback_frees_async(dptr, hStream ? hStream : CU_STREAM_PER_THREAD, &result))
        result = GOS_REAL(cuMemFreeAsync_ptsz)(dptr, hStream);
    return gos_free_end_async(&free, result, hStream, true);
}
