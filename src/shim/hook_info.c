/* How much memory there is: as much as GPUOOMSHIM_LIMIT leaves, where it is set. */
#include "call.h"

#include "../track/allowance.h"
#include "place.h"

/* Of the current device.  Who wants to know only one of the two may pass NULL for the other. */
static struct gos_shown_memory as_shown(uint64_t free_bytes, uint64_t total_bytes)
{
    struct gos_shown_memory shown = {free_bytes, total_bytes};

    gos_rehearsal_show(gos_place_of_context()->device, &shown);
    return shown;
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free, size_t *total)
{
    CUresult result = GOS_REAL(cuMemGetInfo_v2)(free, total);

    if (gos_rehearsal_is_on() && result == CUDA_SUCCESS) {
        struct gos_shown_memory shown = as_shown(free ? *free : 0, total ? *total : 0);
        if (free)
            *free = shown.free_bytes;
        if (total)
            *total = shown.total_bytes;
    }
    return result;
}

CUresult CUDAAPI cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    CUresult result = GOS_REAL(cuMemGetInfo)(free, total);

    if (gos_rehearsal_is_on() && result == CUDA_SUCCESS) {
        struct gos_shown_memory shown = as_shown(free ? *free : 0, total ? *total : 0);
        if (free)
            *free = (unsigned int)shown.free_bytes;
        if (total)
            *total = (unsigned int)shown.total_bytes;
    }
    return result;
}

/* A device has its ordinal as its handle. */
static uint64_t total_as_shown(CUdevice device, uint64_t total_bytes)
{
    uint64_t limit_bytes = gos_shim_active() ? gos_allowance_limit((uint32_t)device) : 0;

    return limit_bytes != 0 && limit_bytes < total_bytes ? limit_bytes : total_bytes;
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    CUresult result = GOS_REAL(cuDeviceTotalMem_v2)(bytes, dev);

    if (gos_rehearsal_is_on() && result == CUDA_SUCCESS)
        *bytes = total_as_shown(dev, *bytes);
    return result;
}

CUresult CUDAAPI cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    CUresult result = GOS_REAL(cuDeviceTotalMem)(bytes, dev);

    if (gos_rehearsal_is_on() && result == CUDA_SUCCESS)
        *bytes = (unsigned int)total_as_shown(dev, *bytes);
    return result;
}
