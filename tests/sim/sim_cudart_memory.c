/* Memory of the runtime: each call is the driver's, with the runtime's manners. */

#include <string.h>

#include "sim_cudart.h"

#define driver sim_rt_driver

static CUdeviceptr number(const void *address)
{
    return (CUdeviceptr)(uintptr_t)address;
}

/* Unlike the driver, the runtime allows sizes of 0. */
static CUresult take(void **out, size_t bytes)
{
    CUdeviceptr address = 0;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = bytes != 0 ? driver.cuMemAlloc(&address, bytes) : CUDA_SUCCESS;
    *out = (void *)(uintptr_t)address;
    return result;
}

static CUresult take_managed(void **out, size_t bytes, unsigned flags)
{
    CUdeviceptr address = 0;
    CUresult result = bytes != 0 ? driver.cuMemAllocManaged(&address, bytes, flags) : CUDA_SUCCESS;
    *out = (void *)(uintptr_t)address;
    return result;
}

static CUresult take_pitch(void **out, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr address = 0;
    CUresult result = driver.cuMemAllocPitch(&address, pitch, width, height, 4);
    *out = (void *)(uintptr_t)address;
    return result;
}

static CUresult take_3d(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    struct cudaPitchedPtr taken = {.xsize = extent.width, .ysize = extent.height};
    CUresult result =
        take_pitch(&taken.ptr, &taken.pitch, extent.width, extent.height * extent.depth);
    if (result == CUDA_SUCCESS)
        *out = taken;
    return result;
}

static CUresult take_array(cudaArray_t *out, const struct cudaChannelFormatDesc *format,
                           size_t width, size_t height)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = width, .Height = height, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    descriptor.NumChannels = format->y == 0 ? 1 : format->z == 0 ? 2 : 4;
    if (format->x == 8)
        descriptor.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    if (format->x == 16)
        descriptor.Format = CU_AD_FORMAT_HALF;
    return driver.cuArray3DCreate((CUarray *)(void *)out, &descriptor);
}

static CUresult describe_pointer(struct cudaPointerAttributes *out, const void *address)
{
    unsigned type = 0;
    unsigned is_managed = 0;
    int ordinal = -1;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &is_managed, &ordinal};
    CUresult result = driver.cuPointerGetAttributes(3, names, values, number(address));
    memset(out, 0, sizeof(*out));
    out->type = is_managed                     ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                               : cudaMemoryTypeUnregistered;
    out->device = type != 0 ? ordinal : -2;
    out->devicePointer = (void *)(uintptr_t)(type != 0 ? address : NULL);
    out->hostPointer =
        type == CU_MEMORYTYPE_DEVICE && !is_managed ? NULL : (void *)(uintptr_t)address;
    return result;
}

static CUresult make_pool(cudaMemPool_t *out, const struct cudaMemPoolProps *properties)
{
    CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    wanted.location.type = (CUmemLocationType)properties->location.type;
    wanted.location.id = properties->location.id;
    return driver.cuMemPoolCreate(out, &wanted);
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    return SIM_RUNTIME(take(out, bytes));
}

cudaError_t cudaFree(void *address)
{
    return SIM_RUNTIME(driver.cuMemFree(number(address)));
}

cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned int flags)
{
    return SIM_RUNTIME(take_managed(out, bytes, flags));
}

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    return SIM_RUNTIME(take_pitch(out, pitch, width, height));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    return SIM_RUNTIME(take_3d(out, extent));
}

cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *format,
                            size_t width, size_t height, unsigned int flags)
{
    (void)flags;
    return SIM_RUNTIME(take_array(out, format, width, height));
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    return SIM_RUNTIME(driver.cuArrayDestroy((CUarray)(void *)array));
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return SIM_RUNTIME(driver.cuMemHostAlloc(out, bytes, 0));
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    return SIM_RUNTIME(driver.cuMemHostAlloc(out, bytes, flags));
}

cudaError_t cudaFreeHost(void *address)
{
    return SIM_RUNTIME(driver.cuMemFreeHost(address));
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned int flags)
{
    return SIM_RUNTIME(driver.cuMemHostRegister(address, bytes, flags));
}

cudaError_t cudaHostUnregister(void *address)
{
    return SIM_RUNTIME(driver.cuMemHostUnregister(address));
}

cudaError_t cudaHostGetDevicePointer(void **out, void *address, unsigned int flags)
{
    return SIM_RUNTIME(
        driver.cuMemHostGetDevicePointer((CUdeviceptr *)(void *)out, address, flags));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    return SIM_RUNTIME(driver.cuMemGetInfo(free_bytes, total));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *address)
{
    return SIM_RUNTIME(describe_pointer(out, address));
}

SIM_RUNTIME_TWO(cudaMallocAsync, ptsz, (void **out, size_t bytes, cudaStream_t stream),
                driver.cuMemAllocAsync[TWIN]((CUdeviceptr *)(void *)out, bytes, stream))
SIM_RUNTIME_TWO(cudaFreeAsync, ptsz, (void *address, cudaStream_t stream),
                driver.cuMemFreeAsync[TWIN](number(address), stream))
SIM_RUNTIME_TWO(cudaMallocFromPoolAsync, ptsz,
                (void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
                driver.cuMemAllocFromPoolAsync[TWIN]((CUdeviceptr *)(void *)out, bytes, pool,
                                                     stream))
SIM_RUNTIME_TWO(cudaMemcpyAsync, ptsz,
                (void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
                 cudaStream_t stream),
                ((void)kind,
                 driver.cuMemcpyAsync[TWIN](number(target), number(source), bytes, stream)))
SIM_RUNTIME_TWO(cudaMemcpy, ptds,
                (void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind),
                ((void)kind, driver.cuMemcpy[TWIN](number(target), number(source), bytes)))
SIM_RUNTIME_TWO(cudaMemsetAsync, ptsz, (void *target, int value, size_t bytes, cudaStream_t stream),
                driver.cuMemsetD8Async[TWIN](number(target), (unsigned char)value, bytes, stream))
SIM_RUNTIME_TWO(cudaMemset, ptds, (void *target, int value, size_t bytes),
                driver.cuMemsetD8Async[TWIN](number(target), (unsigned char)value, bytes, NULL))

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int ordinal)
{
    return SIM_RUNTIME(driver.cuDeviceGetDefaultMemPool(pool, ordinal));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int ordinal)
{
    return SIM_RUNTIME(driver.cuDeviceGetMemPool(pool, ordinal));
}

cudaError_t cudaDeviceSetMemPool(int ordinal, cudaMemPool_t pool)
{
    return SIM_RUNTIME(driver.cuDeviceSetMemPool(ordinal, pool));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    return SIM_RUNTIME(make_pool(pool, properties));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return SIM_RUNTIME(driver.cuMemPoolDestroy(pool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    return SIM_RUNTIME(driver.cuMemPoolTrimTo(pool, keep_bytes));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr name, void *value)
{
    return SIM_RUNTIME(driver.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)name, value));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr name, void *value)
{
    return SIM_RUNTIME(driver.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)name, value));
}

cudaError_t cudaDeviceGraphMemTrim(int ordinal)
{
    return SIM_RUNTIME(driver.cuDeviceGraphMemTrim(ordinal));
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *address)
{
    return SIM_RUNTIME(driver.cuIpcGetMemHandle((CUipcMemHandle *)(void *)handle, number(address)));
}

static CUresult open_handle(void **out, const cudaIpcMemHandle_t *handle, unsigned flags)
{
    CUipcMemHandle copy;
    memcpy(&copy, handle, sizeof(copy));
    return driver.cuIpcOpenMemHandle((CUdeviceptr *)(void *)out, copy, flags);
}

cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned int flags)
{
    return SIM_RUNTIME(open_handle(out, &handle, flags));
}

cudaError_t cudaIpcCloseMemHandle(void *address)
{
    return SIM_RUNTIME(driver.cuIpcCloseMemHandle(number(address)));
}
