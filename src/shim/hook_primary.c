/* Primary contexts, named by their device, and the green contexts on them. */
#include "context_end.h"

#include "../track/handle_map.h"

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct gos_call call = gos_context_call(GOS_EP_cuDevicePrimaryCtxRetain, dev);
    CUresult result;

    do
        result = GOS_REAL(cuDevicePrimaryCtxRetain)(pctx, dev);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && pctx)
        gos_primary_context_seen(*pctx, dev);
    return gos_context_made(&call, result, pctx, dev);
}

static CUresult released(CUresult result, CUdevice device)
{
    if (result == CUDA_SUCCESS)
        gos_primary_context_released(device);
    return result;
}

static CUresult reset(CUresult result, CUdevice device)
{
    if (result == CUDA_SUCCESS)
        gos_primary_context_ended(device);
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return released(GOS_REAL(cuDevicePrimaryCtxRelease)(dev), dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return released(GOS_REAL(cuDevicePrimaryCtxRelease_v2)(dev), dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    return reset(GOS_REAL(cuDevicePrimaryCtxReset)(dev), dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return reset(GOS_REAL(cuDevicePrimaryCtxReset_v2)(dev), dev);
}

/* Green contexts and their device; each holds a reference of the primary context. */
static struct gos_handle_slot slots[256];
static struct gos_handle_map devices = GOS_HANDLE_MAP_INIT(slots);

static uint64_t number(CUgreenCtx green)
{
    return (uint64_t)(uintptr_t)green;
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                                  unsigned int flags)
{
    struct gos_call call = gos_context_call(GOS_EP_cuGreenCtxCreate, dev);
    CUresult result;

    do
        result = GOS_REAL(cuGreenCtxCreate)(phCtx, desc, dev, flags);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && phCtx && gos_shim_active())
        gos_handle_map_put(&devices, number(*phCtx), (uint64_t)dev);
    return gos_call_done(&call, result);
}

CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    CUresult result = GOS_REAL(cuCtxFromGreenCtx)(pContext, hCtx);
    uint64_t device;

    if (result == CUDA_SUCCESS && pContext && gos_shim_active() &&
        gos_handle_map_get(&devices, number(hCtx), &device))
        gos_green_context_seen(*pContext, (CUdevice)device);
    return result;
}

/* Its memory stays: it belongs to the primary context, which may end now. */
CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    CUresult result = GOS_REAL(cuGreenCtxDestroy)(hCtx);
    uint64_t device;

    if (result == CUDA_SUCCESS && gos_shim_active() &&
        gos_handle_map_get(&devices, number(hCtx), &device)) {
        gos_handle_map_remove(&devices, number(hCtx));
        gos_primary_context_released((CUdevice)device);
    }
    return result;
}
