/*
 * The driver as the differential host reaches it: one table, filled in one of
 * three ways (diff_load_*.c), because the shim catches each of them by other
 * means.  A function that the driver lacks is NULL.
 */
#ifndef DIFF_DRIVER_H
#define DIFF_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

/* F(member, name as written in a program): cuda.h's macros choose the ABI. */
#define DIFF_DRIVER(F)                                                                             \
    F(init, cuInit)                                                                                \
    F(device_count, cuDeviceGetCount)                                                              \
    F(primary_retain, cuDevicePrimaryCtxRetain)                                                    \
    F(context_push, cuCtxPushCurrent)                                                              \
    F(context_pop, cuCtxPopCurrent)                                                                \
    F(context_set, cuCtxSetCurrent)                                                                \
    F(context_get, cuCtxGetCurrent)                                                                \
    F(context_destroy, cuCtxDestroy)                                                               \
    F(context_synchronize, cuCtxSynchronize)                                                       \
    F(mem_info, cuMemGetInfo)                                                                      \
    F(alloc, cuMemAlloc)                                                                           \
    F(alloc_pitch, cuMemAllocPitch)                                                                \
    F(alloc_managed, cuMemAllocManaged)                                                            \
    F(free, cuMemFree)                                                                             \
    F(alloc_host, cuMemAllocHost)                                                                  \
    F(host_alloc, cuMemHostAlloc)                                                                  \
    F(free_host, cuMemFreeHost)                                                                    \
    F(host_register, cuMemHostRegister)                                                            \
    F(host_unregister, cuMemHostUnregister)                                                        \
    F(array_create, cuArray3DCreate)                                                               \
    F(array_destroy, cuArrayDestroy)                                                               \
    F(address_range, cuMemGetAddressRange)                                                         \
    F(pointer_attribute, cuPointerGetAttribute)                                                    \
    F(memset_async, cuMemsetD8Async)                                                               \
    F(alloc_async, cuMemAllocAsync)                                                                \
    F(free_async, cuMemFreeAsync)                                                                  \
    F(alloc_from_pool, cuMemAllocFromPoolAsync)                                                    \
    F(pool_create, cuMemPoolCreate)                                                                \
    F(pool_destroy, cuMemPoolDestroy)                                                              \
    F(pool_set, cuMemPoolSetAttribute)                                                             \
    F(pool_get, cuMemPoolGetAttribute)                                                             \
    F(pool_trim, cuMemPoolTrimTo)                                                                  \
    F(device_pool_set, cuDeviceSetMemPool)                                                         \
    F(device_pool_default, cuDeviceGetDefaultMemPool)                                              \
    F(mem_create, cuMemCreate)                                                                     \
    F(mem_release, cuMemRelease)                                                                   \
    F(mem_retain, cuMemRetainAllocationHandle)                                                     \
    F(mem_reserve, cuMemAddressReserve)                                                            \
    F(mem_unreserve, cuMemAddressFree)                                                             \
    F(mem_map, cuMemMap)                                                                           \
    F(mem_unmap, cuMemUnmap)                                                                       \
    F(mem_access, cuMemSetAccess)                                                                  \
    F(stream_create, cuStreamCreate)                                                               \
    F(stream_destroy, cuStreamDestroy)                                                             \
    F(stream_synchronize, cuStreamSynchronize)                                                     \
    F(stream_query, cuStreamQuery)                                                                 \
    F(stream_wait_event, cuStreamWaitEvent)                                                        \
    F(launch_host, cuLaunchHostFunc)                                                               \
    F(launch_kernel, cuLaunchKernel)                                                               \
    F(event_create, cuEventCreate)                                                                 \
    F(event_record, cuEventRecord)                                                                 \
    F(event_query, cuEventQuery)                                                                   \
    F(event_synchronize, cuEventSynchronize)                                                       \
    F(event_destroy, cuEventDestroy)                                                               \
    F(capture_begin, cuStreamBeginCapture)                                                         \
    F(capture_end, cuStreamEndCapture)                                                             \
    F(capture_mode, cuThreadExchangeStreamCaptureMode)                                             \
    F(graph_instantiate, cuGraphInstantiateWithFlags)                                              \
    F(graph_launch, cuGraphLaunch)                                                                 \
    F(graph_destroy, cuGraphDestroy)                                                               \
    F(exec_destroy, cuGraphExecDestroy)

/* Not under one prototype in every cuda.h, or with two streams behind one name. */
typedef CUresult (*diff_context_create)(CUcontext *, unsigned, CUdevice);
typedef CUresult (*diff_alloc_async)(CUdeviceptr *, size_t, CUstream);
typedef CUresult (*diff_free_async)(CUdeviceptr, CUstream);

struct diff_driver {
#define DIFF_MEMBER(member, function) __typeof__(&function) member;
    DIFF_DRIVER(DIFF_MEMBER)
#undef DIFF_MEMBER
    diff_context_create context_create; /* cuCtxCreate_v2 */
    diff_alloc_async alloc_async_per_thread;
    diff_free_async free_async_per_thread;
};

extern struct diff_driver cu;

/* False without a driver.  In diff_load_linked.c, diff_load_dlsym.c, diff_load_resolver.c. */
bool diff_load(void);

#endif
