/*
 * Contexts.  What was allocated in a context dies with it; stream-ordered and
 * physical memory outlives it and belongs to no context.
 */
#include "call.h"

#include <stdatomic.h>

#include "../cuda/driver.h"
#include "../track/pool.h"

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    CUresult result = GOS_REAL(cuInit)(Flags);

    if (result == CUDA_SUCCESS)
        gos_shim_start();
    return result;
}

static bool lives_in_context(const struct gos_allocation *allocation, const void *context)
{
    return gos_home_get(allocation->home).context == (uint64_t)(uintptr_t)context;
}

static void context_died(CUcontext context)
{
    if (!context || !gos_shim_active())
        return;
    gos_registry_drop(lives_in_context, context);
    gos_context_destroyed((uint64_t)(uintptr_t)context);
}

static void context_made(const CUcontext *context, CUdevice device)
{
    if (context && gos_shim_active() && device >= 0 && device < GOS_DEVICE_MAX)
        gos_context_seen((uint64_t)(uintptr_t)*context, (uint32_t)device);
}

/* A context of its own: error 2 here means that not even its base cost was to be had. */
static struct gos_call begin(enum gos_entrypoint entry, CUdevice device)
{
    struct gos_call call = gos_call_begin(entry, GOS_KIND_NONE, 0);

    if (device >= 0 && device < GOS_DEVICE_MAX)
        call.device = (int16_t)device;
    return call;
}

static CUresult made(struct gos_call *call, CUresult result, const CUcontext *context,
                     CUdevice device)
{
    if (result == CUDA_SUCCESS)
        context_made(context, device);
    return gos_call_done(call, result);
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct gos_call call = begin(GOS_EP_cuCtxCreate, dev);
    CUresult result;

    do
        result = GOS_REAL(cuCtxCreate)(pctx, flags, dev);
    while (gos_call_again(&call, result));
    return made(&call, result, pctx, dev);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct gos_call call = begin(GOS_EP_cuCtxCreate_v2, dev);
    CUresult result;

    do
        result = GOS_REAL(cuCtxCreate_v2)(pctx, flags, dev);
    while (gos_call_again(&call, result));
    return made(&call, result, pctx, dev);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    struct gos_call call = begin(GOS_EP_cuCtxCreate_v3, dev);
    CUresult result;

    do
        result = GOS_REAL(cuCtxCreate_v3)(pctx, paramsArray, numParams, flags, dev);
    while (gos_call_again(&call, result));
    return made(&call, result, pctx, dev);
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                                unsigned int flags, CUdevice dev)
{
    struct gos_call call = begin(GOS_EP_cuCtxCreate_v4, dev);
    CUresult result;

    do
        result = GOS_REAL(cuCtxCreate_v4)(pctx, ctxCreateParams, flags, dev);
    while (gos_call_again(&call, result));
    return made(&call, result, pctx, dev);
}
#endif

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    CUresult result = GOS_REAL(cuCtxDestroy_v2)(ctx);

    if (result == CUDA_SUCCESS)
        context_died(ctx);
    return result;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    CUresult result = GOS_REAL(cuCtxDestroy)(ctx);

    if (result == CUDA_SUCCESS)
        context_died(ctx);
    return result;
}

/* --- primary contexts: named by their device, so their handle is remembered ---------------------- */

static _Atomic(CUcontext) primary[GOS_DEVICE_MAX];

static bool in_range(CUdevice device)
{
    return device >= 0 && device < GOS_DEVICE_MAX;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct gos_call call = begin(GOS_EP_cuDevicePrimaryCtxRetain, dev);
    CUresult result;

    do
        result = GOS_REAL(cuDevicePrimaryCtxRetain)(pctx, dev);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && pctx && in_range(dev))
        atomic_store(&primary[dev], *pctx);
    return made(&call, result, pctx, dev);
}

static CUresult primary_died(CUresult result, CUdevice device)
{
    if (result == CUDA_SUCCESS && in_range(device))
        context_died(atomic_load(&primary[device]));
    return result;
}

/* Only the last release ends it; the driver knows which one that was. */
static CUresult primary_released(CUresult result, CUdevice device)
{
    unsigned int flags;
    int active = 1;

    if (result != CUDA_SUCCESS || !gos_driver.cuDevicePrimaryCtxGetState ||
        gos_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active)
        return result;
    return primary_died(result, device);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return primary_released(GOS_REAL(cuDevicePrimaryCtxRelease)(dev), dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return primary_released(GOS_REAL(cuDevicePrimaryCtxRelease_v2)(dev), dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    return primary_died(GOS_REAL(cuDevicePrimaryCtxReset)(dev), dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return primary_died(GOS_REAL(cuDevicePrimaryCtxReset_v2)(dev), dev);
}
