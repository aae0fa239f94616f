/*
 * A driver that costs nothing: addresses come from a counter per thread and
 * nothing is ever looked up, so that what is measured against it is the shim.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))
#define SPAN ((CUdeviceptr)1 << 36)

static atomic_uint threads;
static __thread CUdeviceptr next_address;

static CUdeviceptr take(size_t bytes)
{
    if (next_address == 0)
        next_address = ((CUdeviceptr)atomic_fetch_add(&threads, 1) + 1) * SPAN;
    CUdeviceptr address = next_address;
    next_address += (bytes + 511) & ~(size_t)511;
    /* Around again well before the next thread's span; what was there is long freed. */
    if ((next_address & (SPAN - 1)) > SPAN - ((CUdeviceptr)1 << 32))
        next_address &= ~(SPAN - 1);
    return address;
}

VISIBLE CUresult cuInit(unsigned int flags)
{
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
VISIBLE CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = (CUcontext)0x1000;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    return cuCtxGetCurrent(context);
}
VISIBLE CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    (void)device;
    *pool = (CUmemoryPool)0x2000;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return cuDeviceGetDefaultMemPool(pool, device);
}
VISIBLE CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = (size_t)1 << 40;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    *address = take(bytes);
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuMemFree_v2(CUdeviceptr address)
{
    (void)address;
    return CUDA_SUCCESS;
}
VISIBLE CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemAlloc_v2(address, bytes);
}
VISIBLE CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    return cuMemFree_v2(address);
}
VISIBLE CUresult cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                unsigned int shared, CUstream stream, void **parameters,
                                void **extra)
{
    (void)function, (void)x, (void)y, (void)z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)stream, (void)parameters, (void)extra;
    return CUDA_SUCCESS;
}
