/* Arrays and mipmapped arrays: their memory follows from the descriptor. */
#include "call.h"

#include <errno.h>

#include "../cuda/array_bytes.h"
#include "../track/vmm.h"

static struct gos_call begin(enum gos_entrypoint entry, uint64_t bytes)
{
    return gos_call_begin(entry, GOS_KIND_ARRAY, bytes);
}

static uint64_t written(const CUarray *array, CUresult result)
{
    return result == CUDA_SUCCESS && array ? (uint64_t)(uintptr_t)*array : 0;
}

static uint64_t written_mipmapped(const CUmipmappedArray *array, CUresult result)
{
    return result == CUDA_SUCCESS && array ? (uint64_t)(uintptr_t)*array : 0;
}

static uint64_t bytes_of(const CUDA_ARRAY_DESCRIPTOR *flat)
{
    return flat ? gos_array_bytes(&(CUDA_ARRAY3D_DESCRIPTOR){.Width = flat->Width,
                                                             .Height = flat->Height,
                                                             .Format = flat->Format,
                                                             .NumChannels = flat->NumChannels})
                : 0;
}

static uint64_t bytes_of_v1(const CUDA_ARRAY_DESCRIPTOR_v1 *flat)
{
    return flat ? bytes_of(&(CUDA_ARRAY_DESCRIPTOR){.Width = flat->Width,
                                                    .Height = flat->Height,
                                                    .Format = flat->Format,
                                                    .NumChannels = flat->NumChannels})
                : 0;
}

static uint64_t bytes_of_3d_v1(const CUDA_ARRAY3D_DESCRIPTOR_v1 *deep)
{
    return deep ? gos_array_bytes(&(CUDA_ARRAY3D_DESCRIPTOR){.Width = deep->Width,
                                                             .Height = deep->Height,
                                                             .Depth = deep->Depth,
                                                             .Format = deep->Format,
                                                             .NumChannels = deep->NumChannels,
                                                             .Flags = deep->Flags})
                : 0;
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    struct gos_call call = begin(GOS_EP_cuArrayCreate_v2, bytes_of(pAllocateArray));
    CUresult result;

    do
        result = gos_call_admits(&call, pHandle)
                     ? GOS_REAL(cuArrayCreate_v2)(pHandle, pAllocateArray)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(pHandle, result));
}

CUresult CUDAAPI cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
    struct gos_call call = begin(GOS_EP_cuArrayCreate, bytes_of_v1(pAllocateArray));
    CUresult result;

    do
        result = gos_call_admits(&call, pHandle) ? GOS_REAL(cuArrayCreate)(pHandle, pAllocateArray)
                                                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(pHandle, result));
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    struct gos_call call = begin(GOS_EP_cuArray3DCreate_v2, gos_array_bytes(pAllocateArray));
    CUresult result;

    do
        result = gos_call_admits(&call, pHandle)
                     ? GOS_REAL(cuArray3DCreate_v2)(pHandle, pAllocateArray)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(pHandle, result));
}

CUresult CUDAAPI cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
    struct gos_call call = begin(GOS_EP_cuArray3DCreate, bytes_of_3d_v1(pAllocateArray));
    CUresult result;

    do
        result = gos_call_admits(&call, pHandle)
                     ? GOS_REAL(cuArray3DCreate)(pHandle, pAllocateArray)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written(pHandle, result));
}

/* With the array go its mappings of physical memory (cuMemMapArrayAsync). */
static CUresult destroyed(struct gos_free *free, CUresult result)
{
    int saved = errno;

    if (result == CUDA_SUCCESS && gos_call_tracks()) {
        gos_thread.depth++;
        gos_vmm_array_destroyed(free->address);
        gos_thread.depth--;
    }
    errno = saved;
    return gos_free_end(free, result);
}

CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
    struct gos_free free =
        gos_free_begin(GOS_EP_cuArrayDestroy, GOS_SPACE_ARRAY, (uint64_t)(uintptr_t)hArray);

    return destroyed(&free, GOS_REAL(cuArrayDestroy)(hArray));
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                        const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                        unsigned int numMipmapLevels)
{
    struct gos_call call = begin(GOS_EP_cuMipmappedArrayCreate,
                                 gos_array_mipmapped_bytes(pMipmappedArrayDesc, numMipmapLevels));
    CUresult result;

    do
        result =
            gos_call_admits(&call, pHandle)
                ? GOS_REAL(cuMipmappedArrayCreate)(pHandle, pMipmappedArrayDesc, numMipmapLevels)
                : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, written_mipmapped(pHandle, result));
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    struct gos_free free = gos_free_begin(GOS_EP_cuMipmappedArrayDestroy, GOS_SPACE_ARRAY,
                                          (uint64_t)(uintptr_t)hMipmappedArray);

    return destroyed(&free, GOS_REAL(cuMipmappedArrayDestroy)(hMipmappedArray));
}
