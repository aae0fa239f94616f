/* Pinned host memory: allocated, or the host's own and registered. */
#include <stddef.h>

#include "call.h"

#include "../recover/fallback_free.h"

static uint64_t written(void *const *pointer, CUresult result)
{
    return result == CUDA_SUCCESS && pointer ? (uint64_t)(uintptr_t)*pointer : 0;
}

static CUresult refuse(void **pointer)
{
    *pointer = NULL;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemAllocHost_v2, GOS_KIND_HOST, bytesize);
    CUresult result;

    do
        result =
            gos_call_admits(&call, pp) ? GOS_REAL(cuMemAllocHost_v2)(pp, bytesize) : refuse(pp);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(pp, result));
}

CUresult CUDAAPI cuMemAllocHost(void **pp, unsigned int bytesize)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemAllocHost, GOS_KIND_HOST, bytesize);
    CUresult result;

    do
        result = gos_call_admits(&call, pp) ? GOS_REAL(cuMemAllocHost)(pp, bytesize) : refuse(pp);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(pp, result));
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemHostAlloc, GOS_KIND_HOST, bytesize);
    CUresult result;

    do
        result =
            gos_call_admits(&call, pp) ? GOS_REAL(cuMemHostAlloc)(pp, bytesize, Flags) : refuse(pp);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(pp, result));
}

CUresult CUDAAPI cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct gos_call call =
        gos_call_begin(GOS_EP_cuMemHostRegister_v2, GOS_KIND_REGISTERED, bytesize);
    CUresult result;

    do
        result = gos_call_admits(&call, p) ? GOS_REAL(cuMemHostRegister_v2)(p, bytesize, Flags)
                                           : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, (uint64_t)(uintptr_t)p);
}

CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemHostRegister, GOS_KIND_REGISTERED, bytesize);
    CUresult result;

    do
        result = gos_call_admits(&call, p) ? GOS_REAL(cuMemHostRegister)(p, bytesize, Flags)
                                           : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, (uint64_t)(uintptr_t)p);
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
    struct gos_free free =
        gos_free_begin(GOS_EP_cuMemFreeHost, GOS_SPACE_ADDRESS, (uint64_t)(uintptr_t)p);

    gos_fallback_forget((uint64_t)(uintptr_t)p);
    return gos_free_end(&free, GOS_REAL(cuMemFreeHost)(p));
}

CUresult CUDAAPI cuMemHostUnregister(void *p)
{
    struct gos_free free =
        gos_free_begin(GOS_EP_cuMemHostUnregister, GOS_SPACE_ADDRESS, (uint64_t)(uintptr_t)p);

    return gos_free_end(&free, GOS_REAL(cuMemHostUnregister)(p));
}
