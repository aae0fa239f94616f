/*
 * The driver functions that we call for ourselves: to look, and to recover.
 * They are libcuda's own and never pass our hooks or another preload's.
 *
 * A member is NULL where the driver is too old for it, and all are before the
 * first successful gos_driver_bind(): callers check.
 *
 * Hook context: yes, all.  None of those called by observe creates a context.
 */
#ifndef GOS_CUDA_DRIVER_H
#define GOS_CUDA_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_types.h"

/* CALL(member, exported symbol, type in cudaTypedefs.h) */
#define GOS_DRIVER_CALLS(CALL)                                                                     \
    CALL(cuDriverGetVersion, cuDriverGetVersion, PFN_cuDriverGetVersion_v2020)                     \
    CALL(cuDeviceGetCount, cuDeviceGetCount, PFN_cuDeviceGetCount_v2000)                           \
    CALL(cuDeviceGet, cuDeviceGet, PFN_cuDeviceGet_v2000)                                          \
    CALL(cuDeviceGetName, cuDeviceGetName, PFN_cuDeviceGetName_v2000)                              \
    CALL(cuDeviceGetUuid, cuDeviceGetUuid, PFN_cuDeviceGetUuid_v9020)                              \
    CALL(cuDeviceGetUuid_v2, cuDeviceGetUuid_v2, PFN_cuDeviceGetUuid_v11040)                       \
    CALL(cuDeviceGetAttribute, cuDeviceGetAttribute, PFN_cuDeviceGetAttribute_v2000)               \
    CALL(cuDeviceTotalMem, cuDeviceTotalMem_v2, PFN_cuDeviceTotalMem_v3020)                        \
    CALL(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState,                                   \
         PFN_cuDevicePrimaryCtxGetState_v7000)                                                     \
    CALL(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool,                                     \
         PFN_cuDeviceGetDefaultMemPool_v11020)                                                     \
    CALL(cuDeviceGetMemPool, cuDeviceGetMemPool, PFN_cuDeviceGetMemPool_v11020)                    \
    CALL(cuDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute,                               \
         PFN_cuDeviceGetGraphMemAttribute_v11040)                                                  \
    CALL(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, PFN_cuDeviceGraphMemTrim_v11040)              \
    CALL(cuCtxGetCurrent, cuCtxGetCurrent, PFN_cuCtxGetCurrent_v4000)                              \
    CALL(cuCtxSetCurrent, cuCtxSetCurrent, PFN_cuCtxSetCurrent_v4000)                              \
    CALL(cuCtxPushCurrent, cuCtxPushCurrent_v2, PFN_cuCtxPushCurrent_v4000)                        \
    CALL(cuCtxPopCurrent, cuCtxPopCurrent_v2, PFN_cuCtxPopCurrent_v4000)                           \
    CALL(cuCtxGetDevice, cuCtxGetDevice, PFN_cuCtxGetDevice_v2000)                                 \
    CALL(cuMemGetInfo, cuMemGetInfo_v2, PFN_cuMemGetInfo_v3020)                                    \
    CALL(cuMemGetAddressRange, cuMemGetAddressRange_v2, PFN_cuMemGetAddressRange_v3020)            \
    CALL(cuMemCreate, cuMemCreate, PFN_cuMemCreate_v10020)                                         \
    CALL(cuMemRelease, cuMemRelease, PFN_cuMemRelease_v10020)                                      \
    CALL(cuMemAlloc, cuMemAlloc_v2, PFN_cuMemAlloc_v3020)                                          \
    CALL(cuMemFree, cuMemFree_v2, PFN_cuMemFree_v3020)                                             \
    CALL(cuMemFreeAsync, cuMemFreeAsync, PFN_cuMemFreeAsync_v11020)                                \
    CALL(cuMemAllocManaged, cuMemAllocManaged, PFN_cuMemAllocManaged_v6000)                        \
    CALL(cuMemHostAlloc, cuMemHostAlloc, PFN_cuMemHostAlloc_v2020)                                 \
    CALL(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                  \
         PFN_cuMemHostGetDevicePointer_v3020)                                                      \
    CALL(cuMemFreeHost, cuMemFreeHost, PFN_cuMemFreeHost_v2000)                                    \
    CALL(cuCtxSynchronize, cuCtxSynchronize, PFN_cuCtxSynchronize_v2000)                           \
    CALL(cuMemGetAllocationPropertiesFromHandle, cuMemGetAllocationPropertiesFromHandle,           \
         PFN_cuMemGetAllocationPropertiesFromHandle_v10020)                                        \
    CALL(cuMemPoolGetAttribute, cuMemPoolGetAttribute, PFN_cuMemPoolGetAttribute_v11020)           \
    CALL(cuMemPoolGetAccess, cuMemPoolGetAccess, PFN_cuMemPoolGetAccess_v11020)                    \
    CALL(cuMemPoolTrimTo, cuMemPoolTrimTo, PFN_cuMemPoolTrimTo_v11020)                             \
    CALL(cuPointerGetAttribute, cuPointerGetAttribute, PFN_cuPointerGetAttribute_v4000)            \
    CALL(cuEventCreate, cuEventCreate, PFN_cuEventCreate_v2000)                                    \
    CALL(cuEventRecord, cuEventRecord, PFN_cuEventRecord_v2000)                                    \
    CALL(cuEventQuery, cuEventQuery, PFN_cuEventQuery_v2000)                                       \
    CALL(cuEventSynchronize, cuEventSynchronize, PFN_cuEventSynchronize_v2000)                     \
    CALL(cuEventDestroy, cuEventDestroy_v2, PFN_cuEventDestroy_v4000)                              \
    CALL(cuFuncIsLoaded, cuFuncIsLoaded, PFN_cuFuncIsLoaded_v12040)                                \
    CALL(cuFuncGetAttribute, cuFuncGetAttribute, PFN_cuFuncGetAttribute_v2020)                     \
    CALL(cuStreamQuery, cuStreamQuery, PFN_cuStreamQuery_v2000)                                    \
    CALL(cuStreamQuery_ptsz, cuStreamQuery_ptsz, PFN_cuStreamQuery_v7000_ptsz)                     \
    CALL(cuStreamSynchronize, cuStreamSynchronize, PFN_cuStreamSynchronize_v2000)                  \
    CALL(cuStreamSynchronize_ptsz, cuStreamSynchronize_ptsz, PFN_cuStreamSynchronize_v7000_ptsz)   \
    CALL(cuStreamIsCapturing, cuStreamIsCapturing, PFN_cuStreamIsCapturing_v10000)                 \
    CALL(cuStreamIsCapturing_ptsz, cuStreamIsCapturing_ptsz, PFN_cuStreamIsCapturing_v10000_ptsz)  \
    CALL(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, PFN_cuStreamGetCaptureInfo_v11030)     \
    CALL(cuStreamGetCtx, cuStreamGetCtx, PFN_cuStreamGetCtx_v9020)                                 \
    CALL(cuStreamGetCtx_ptsz, cuStreamGetCtx_ptsz, PFN_cuStreamGetCtx_v9020_ptsz)                  \
    CALL(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,                     \
         PFN_cuThreadExchangeStreamCaptureMode_v10010)

struct gos_driver {
#define GOS_DRIVER_MEMBER(member, symbol, type) type member;
    GOS_DRIVER_CALLS(GOS_DRIVER_MEMBER)
#undef GOS_DRIVER_MEMBER
};

/* Replaced member by member in tests. */
extern struct gos_driver gos_driver;

/*
 * Fill every member that libcuda exports.  Idempotent, lock-free, cheap once
 * done; tried again while libcuda is not loaded.  False without a driver.
 */
bool gos_driver_bind(void);

/* The driver that the members point into was unloaded; another may be there.  Binds again. */
void gos_driver_replaced(void);

/*
 * Is a free that was asked for by us inside the driver?  One that waits for
 * work on the device makes other calls wait as long, perhaps for ever [seen on
 * an H200, driver 580: cuMemFree beside a host function that does not return].
 * Then nothing may be asked that the host has not asked itself.
 */
extern _Atomic bool gos_driver_held;
static inline bool gos_driver_is_held(void)
{
    return atomic_load_explicit(&gos_driver_held, memory_order_acquire);
}

/* Free memory of the current context's device, in bytes; 0 when it cannot be told, or is held. */
uint64_t gos_driver_free_bytes(void);

#endif
