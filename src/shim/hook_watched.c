/*
 * Watched: nothing is recorded, but with lazy loading these are where a full
 * device shows.  On error 2 nothing was launched or loaded, so the call may be
 * repeated after recovery.  Success costs one branch.
 */
#include "call.h"

#define WATCH(symbol) gos_call_begin(GOS_EP_##symbol, GOS_KIND_NONE, 0)

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                unsigned int gridDimZ, unsigned int blockDimX,
                                unsigned int blockDimY, unsigned int blockDimZ,
                                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
                                void **extra)
{
    struct gos_call call = WATCH(cuLaunchKernel);
    CUresult result;

    do
        result = GOS_REAL(cuLaunchKernel)(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
                                          blockDimZ, sharedMemBytes, hStream, kernelParams, extra);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                     unsigned int gridDimZ, unsigned int blockDimX,
                                     unsigned int blockDimY, unsigned int blockDimZ,
                                     unsigned int sharedMemBytes, CUstream hStream,
                                     void **kernelParams, void **extra)
{
    struct gos_call call = WATCH(cuLaunchKernel_ptsz);
    CUresult result;

    do
        result =
            GOS_REAL(cuLaunchKernel_ptsz)(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
                                          blockDimZ, sharedMemBytes, hStream, kernelParams, extra);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                  void **extra)
{
    struct gos_call call = WATCH(cuLaunchKernelEx);
    CUresult result;

    do
        result = GOS_REAL(cuLaunchKernelEx)(config, f, kernelParams, extra);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                                       void **kernelParams, void **extra)
{
    struct gos_call call = WATCH(cuLaunchKernelEx_ptsz);
    CUresult result;

    do
        result = GOS_REAL(cuLaunchKernelEx_ptsz)(config, f, kernelParams, extra);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
    struct gos_call call = WATCH(cuModuleLoad);
    CUresult result;

    do
        result = GOS_REAL(cuModuleLoad)(module, fname);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    struct gos_call call = WATCH(cuModuleLoadData);
    CUresult result;

    do
        result = GOS_REAL(cuModuleLoadData)(module, image);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                    CUjit_option *options, void **optionValues)
{
    struct gos_call call = WATCH(cuModuleLoadDataEx);
    CUresult result;

    do
        result = GOS_REAL(cuModuleLoadDataEx)(module, image, numOptions, options, optionValues);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    struct gos_call call = WATCH(cuModuleLoadFatBinary);
    CUresult result;

    do
        result = GOS_REAL(cuModuleLoadFatBinary)(module, fatCubin);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct gos_call call = WATCH(cuModuleGetFunction);
    CUresult result;

    do
        result = GOS_REAL(cuModuleGetFunction)(hfunc, hmod, name);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    struct gos_call call = WATCH(cuLibraryLoadData);
    CUresult result;

    do
        result = GOS_REAL(cuLibraryLoadData)(library, code, jitOptions, jitOptionsValues,
                                             numJitOptions, libraryOptions, libraryOptionValues,
                                             numLibraryOptions);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct gos_call call = WATCH(cuLibraryGetKernel);
    CUresult result;

    do
        result = GOS_REAL(cuLibraryGetKernel)(pKernel, library, name);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct gos_call call = WATCH(cuLibraryGetModule);
    CUresult result;

    do
        result = GOS_REAL(cuLibraryGetModule)(pMod, library);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct gos_call call = WATCH(cuKernelGetFunction);
    CUresult result;

    do
        result = GOS_REAL(cuKernelGetFunction)(pFunc, kernel);
    while (gos_call_again(&call, result));
    return gos_call_done(&call, result);
}
