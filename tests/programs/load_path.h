/*
 * The driver, reached as real programs reach it.  Compiled three times:
 *   LOAD_LINKED    linked with -lcuda: caught by exported names
 *   LOAD_DLSYM     dlopen, then dlsym for each function: as ctypes and numba do
 *   LOAD_RESOLVER  dlsym for cuGetProcAddress_v2 alone, then the resolver for
 *                  everything: as every cudart since 12.0 does
 *
 * A host calls load_driver() first and then driver.mem_alloc(…).  A function
 * that this driver lacks is NULL, except in LOAD_LINKED programs.
 */
#ifndef LOAD_PATH_H
#define LOAD_PATH_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* What one host needs besides: defined before this is included. */
#ifndef HOST_FUNCTIONS
#define HOST_FUNCTIONS(F)
#endif

/* F(member, name as written in a program): cuda.h's macros choose the ABI. */
#define DRIVER_FUNCTIONS(F)                                                                        \
    F(init, cuInit)                                                                                \
    F(device_get, cuDeviceGet)                                                                     \
    F(device_count, cuDeviceGetCount)                                                              \
    F(primary_retain, cuDevicePrimaryCtxRetain)                                                    \
    F(device_total, cuDeviceTotalMem)                                                              \
    F(primary_release, cuDevicePrimaryCtxRelease)                                                  \
    F(primary_reset, cuDevicePrimaryCtxReset)                                                      \
    F(context_set, cuCtxSetCurrent)                                                                \
    F(context_get, cuCtxGetCurrent)                                                                \
    F(capture_mode, cuThreadExchangeStreamCaptureMode)                                             \
    F(mem_get_info, cuMemGetInfo)                                                                  \
    F(mem_alloc, cuMemAlloc)                                                                       \
    F(mem_alloc_pitch, cuMemAllocPitch)                                                            \
    F(mem_alloc_managed, cuMemAllocManaged)                                                        \
    F(mem_free, cuMemFree)                                                                         \
    F(array_create, cuArrayCreate)                                                                 \
    F(array_destroy, cuArrayDestroy)                                                               \
    F(mem_alloc_host, cuMemAllocHost)                                                              \
    F(mem_host_alloc, cuMemHostAlloc)                                                              \
    F(mem_free_host, cuMemFreeHost)                                                                \
    F(mem_host_register, cuMemHostRegister)                                                        \
    F(mem_host_unregister, cuMemHostUnregister)                                                    \
    F(mem_alloc_async, cuMemAllocAsync)                                                            \
    F(mem_free_async, cuMemFreeAsync)                                                              \
    F(mem_alloc_from_pool, cuMemAllocFromPoolAsync)                                                \
    F(pool_create, cuMemPoolCreate)                                                                \
    F(pool_destroy, cuMemPoolDestroy)                                                              \
    F(pool_set, cuMemPoolSetAttribute)                                                             \
    F(pool_trim, cuMemPoolTrimTo)                                                                  \
    F(pool_default, cuDeviceGetDefaultMemPool)                                                     \
    F(granularity, cuMemGetAllocationGranularity)                                                  \
    F(mem_create, cuMemCreate)                                                                     \
    F(mem_release, cuMemRelease)                                                                   \
    F(mem_reserve, cuMemAddressReserve)                                                            \
    F(mem_unreserve, cuMemAddressFree)                                                             \
    F(mem_map, cuMemMap)                                                                           \
    F(mem_unmap, cuMemUnmap)                                                                       \
    F(mem_set_access, cuMemSetAccess)                                                              \
    F(stream_create, cuStreamCreate)                                                               \
    F(stream_destroy, cuStreamDestroy)                                                             \
    F(stream_synchronize, cuStreamSynchronize)                                                     \
    F(launch_host_func, cuLaunchHostFunc)                                                          \
    F(launch_kernel, cuLaunchKernel)                                                               \
    F(module_load_data, cuModuleLoadData)                                                          \
    F(module_get_function, cuModuleGetFunction)                                                    \
    HOST_FUNCTIONS(F)

struct driver {
#define MEMBER(member, function) __typeof__(&function) member;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

static struct driver driver;

#define EXPANDED(function) #function
#define SYMBOL(function) EXPANDED(function)

#if defined(LOAD_LINKED)

static void load_driver(void)
{
#define FROM_LINK(member, function) driver.member = &function;
    DRIVER_FUNCTIONS(FROM_LINK)
#undef FROM_LINK
}

#else

static void *open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        printf("outcome: no driver\n");
        exit(77);
    }
    return library;
}

#if defined(LOAD_DLSYM)

static void load_driver(void)
{
    void *library = open_driver();
#define FROM_DLSYM(member, function)                                                               \
    driver.member = (__typeof__(&function))dlsym(library, SYMBOL(function));
    DRIVER_FUNCTIONS(FROM_DLSYM)
#undef FROM_DLSYM
}

#elif defined(LOAD_RESOLVER)

typedef CUresult (*resolver)(const char *, void **, int, cuuint64_t,
                             CUdriverProcAddressQueryResult *);

static void load_driver(void)
{
    CUdriverProcAddressQueryResult found;
    resolver resolve = (resolver)dlsym(open_driver(), "cuGetProcAddress_v2");
    if (resolve == NULL) {
        printf("outcome: no resolver\n");
        exit(77);
    }
    /* The name as the programmer wrote it: the version chooses the ABI. */
#define FROM_RESOLVER(member, function)                                                            \
    resolve(#function, (void **)&driver.member, CUDA_VERSION, 0, &found);
    DRIVER_FUNCTIONS(FROM_RESOLVER)
#undef FROM_RESOLVER
}

#else
#error "define LOAD_LINKED, LOAD_DLSYM or LOAD_RESOLVER"
#endif
#endif

#endif
