/* Device, pitched and managed memory of the current context. */
#include "call.h"

#include "../base/hot.h"
#include "../recover/fallback_free.h"

/* Out-parameters are the driver's to check; we only read what it has written. */
static uint64_t written(const CUdeviceptr *pointer, CUresult result)
{
    return result == CUDA_SUCCESS && pointer ? *pointer : 0;
}

static uint64_t written_v1(const CUdeviceptr_v1 *pointer, CUresult result)
{
    return result == CUDA_SUCCESS && pointer ? *pointer : 0;
}

static CUresult refuse_v1(CUdeviceptr_v1 *pointer)
{
    *pointer = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

GOS_HOT CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct gos_call call =
        gos_call_replaceable(gos_call_begin(GOS_EP_cuMemAlloc_v2, GOS_KIND_DEVICE, bytesize));
    CUresult result;

    do
        result = gos_call_goes_on(&call, dptr)
                     ? gos_call_keep(&call, GOS_REAL(cuMemAlloc_v2)(dptr, bytesize), dptr)
                     : gos_call_answer(&call, dptr);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemAlloc, GOS_KIND_DEVICE, bytesize);
    CUresult result;

    do
        result =
            gos_call_admits(&call, dptr) ? GOS_REAL(cuMemAlloc)(dptr, bytesize) : refuse_v1(dptr);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written_v1(dptr, result));
}

/* What rows are padded to, on every device so far (cudaDeviceProp::textureAlignment). */
#define ROW_BYTES 512

/* What the rows take is known only afterwards; before, this stands. */
static uint64_t pitched(size_t width_bytes, size_t height)
{
    uint64_t pitch, bytes;

    if (__builtin_add_overflow(width_bytes, ROW_BYTES - 1, &pitch))
        return UINT64_MAX;
    pitch &= ~(uint64_t)(ROW_BYTES - 1);
    return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                    size_t Height, unsigned int ElementSizeBytes)
{
    struct gos_call call =
        gos_call_begin(GOS_EP_cuMemAllocPitch_v2, GOS_KIND_DEVICE, pitched(WidthInBytes, Height));
    CUresult result;

    do
        result = gos_call_admits(&call, dptr)
                     ? gos_call_keep(&call,
                                     GOS_REAL(cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes,
                                                                  Height, ElementSizeBytes),
                                     dptr)
                     : gos_call_refuse(dptr);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && pPitch)
        call.bytes = *pPitch * Height;
    return gos_call_made(&call, result, written(dptr, result));
}

CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch,
                                 unsigned int WidthInBytes, unsigned int Height,
                                 unsigned int ElementSizeBytes)
{
    struct gos_call call =
        gos_call_begin(GOS_EP_cuMemAllocPitch, GOS_KIND_DEVICE, pitched(WidthInBytes, Height));
    CUresult result;

    do
        result =
            gos_call_admits(&call, dptr)
                ? GOS_REAL(cuMemAllocPitch)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes)
                : refuse_v1(dptr);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && pPitch)
        call.bytes = (uint64_t)*pPitch * Height;
    return gos_call_made(&call, result, written_v1(dptr, result));
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemAllocManaged, GOS_KIND_MANAGED, bytesize);
    CUresult result;

    do
        result = gos_call_admits(&call, dptr) ? GOS_REAL(cuMemAllocManaged)(dptr, bytesize, flags)
                                              : gos_call_refuse(dptr);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(dptr, result));
}

/* Also frees managed and stream-ordered memory: the record says what it was. */
GOS_HOT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
    struct gos_free free = gos_free_begin(GOS_EP_cuMemFree_v2, GOS_SPACE_ADDRESS, dptr);
    CUresult result;

    if (!gos_fallback_frees(dptr, &result))
        result = GOS_REAL(cuMemFree_v2)(dptr);
    return gos_free_end(&free, result);
}

CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 dptr)
{
    struct gos_free free = gos_free_begin(GOS_EP_cuMemFree, GOS_SPACE_ADDRESS, dptr);
    CUresult result;

    if (!gos_fallback_frees(dptr, &result))
        result = GOS_REAL(cuMemFree)(dptr);
    return gos_free_end(&free, result);
}
