/*
 * Contexts.  What was allocated in a context dies with it; stream-ordered and
 * physical memory outlives it and belongs to no context.
 */
#include "call.h"

#include "../track/shares.h"
#include "context_end.h"
#include "refused.h"

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    gos_shim_notice_fork();
    CUresult result = GOS_REAL(cuInit)(Flags);

    if (result == CUDA_SUCCESS) {
        gos_shim_start();
        gos_refused_watch();
    }
    return result;
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct gos_call call = gos_context_call(GOS_EP_cuCtxCreate, dev);
    CUresult result;

    do
        result = gos_context_admits(&call) ? GOS_REAL(cuCtxCreate)(pctx, flags, dev)
                                           : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_context_made(&call, result, pctx, dev);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct gos_call call = gos_context_call(GOS_EP_cuCtxCreate_v2, dev);
    CUresult result;

    do
        result = gos_context_admits(&call) ? GOS_REAL(cuCtxCreate_v2)(pctx, flags, dev)
                                           : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_context_made(&call, result, pctx, dev);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    struct gos_call call = gos_context_call(GOS_EP_cuCtxCreate_v3, dev);
    CUresult result;

    do
        result = gos_context_admits(&call)
                     ? GOS_REAL(cuCtxCreate_v3)(pctx, paramsArray, numParams, flags, dev)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_context_made(&call, result, pctx, dev);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                                unsigned int flags, CUdevice dev)
{
    struct gos_call call = gos_context_call(GOS_EP_cuCtxCreate_v4, dev);
    CUresult result;

    do
        result = gos_context_admits(&call)
                     ? GOS_REAL(cuCtxCreate_v4)(pctx, ctxCreateParams, flags, dev)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_context_made(&call, result, pctx, dev);
}

/* --- its end --------------------------------------------------------------------------------- */

/* cuCtxAttach adds to the use count of a context, which cuCtxDetach takes back. */
static struct gos_shares attachments = GOS_SHARES_INIT;

static CUresult died(CUresult result, CUcontext context)
{
    if (result == CUDA_SUCCESS && gos_shim_active())
        gos_context_ended(context);
    return result;
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    return died(GOS_REAL(cuCtxDestroy_v2)(ctx), ctx);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    return died(GOS_REAL(cuCtxDestroy)(ctx), ctx);
}

CUresult CUDAAPI cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    CUresult result = GOS_REAL(cuCtxAttach)(pctx, flags);

    if (result == CUDA_SUCCESS && pctx && gos_shim_active())
        gos_shares_add(&attachments, (uint64_t)(uintptr_t)*pctx);
    return result;
}

CUresult CUDAAPI cuCtxDetach(CUcontext ctx)
{
    CUresult result = GOS_REAL(cuCtxDetach)(ctx);
    bool was_last = result == CUDA_SUCCESS && gos_shim_active() &&
                    !gos_shares_drop(&attachments, (uint64_t)(uintptr_t)ctx);

    return was_last ? died(result, ctx) : result;
}
