/* Entry points of streams: creation, properties, waiting, host functions. */

#include <stdlib.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_stream.h"

struct callback {
    CUstreamCallback function;
    CUstream stream;
    void *user_data;
};

static CUresult create(CUstream *out, unsigned flags, int priority)
{
    if (out == NULL || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_stream_make(sim_context_current(), flags, priority);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Work already issued goes on; the record stays for the events and frees that refer to it. */
static CUresult destroy(CUstream handle)
{
    CUstream stream = sim_stream_find(handle, false);
    if (handle == NULL || stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_capture_abandon(stream);
    stream->magic = 0;
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream stream)
{
    CUresult result = sim_capture_check_wait(stream);
    if (result == CUDA_SUCCESS)
        sim_stream_synchronize(stream);
    return result;
}

/* A query tells the program, but not the driver's pools, that work is done [H200]. */
static CUresult query(CUstream stream)
{
    CUresult result = sim_capture_check_wait(stream);
    if (result != CUDA_SUCCESS)
        return result;
    return sim_stream_reached(stream, stream->issued) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult synchronize_context(CUcontext context)
{
    if (!sim_context_is_alive(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (sim_capture_kill_all())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    sim_streams_synchronize(context);
    return CUDA_SUCCESS;
}

static CUresult synchronize_given(CUcontext context)
{
    return synchronize_context(context != NULL ? context : sim_context_current());
}

static CUresult launch_host(CUstream stream, CUhostFn function, void *argument)
{
    if (stream == NULL || function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL)
        return sim_capture_host(stream, function, argument);
    return sim_stream_run(stream, function, argument);
}

static void run_callback(void *argument)
{
    struct callback *callback = argument;
    callback->function(callback->stream, CUDA_SUCCESS, callback->user_data);
    free(callback);
}

static CUresult add_callback(CUstream stream, CUstream handle, CUstreamCallback function,
                             void *user_data)
{
    struct callback *callback = malloc(sizeof(*callback));
    if (callback == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *callback = (struct callback){function, handle, user_data};
    return launch_host(stream, run_callback, callback);
}

static CUresult get_context(CUstream stream, CUcontext *out)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = stream->context;
    return CUDA_SUCCESS;
}

static CUresult get_contexts(CUstream stream, CUcontext *out, CUgreenCtx *green)
{
    if (green != NULL)
        *green = NULL;
    return get_context(stream, out);
}

static CUresult get_device(CUstream stream, CUdevice *device)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *device = stream->context->device;
    return CUDA_SUCCESS;
}

static CUresult get_id(CUstream stream, unsigned long long *id)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *id = stream->id;
    return CUDA_SUCCESS;
}

static CUresult get_flags(CUstream stream, unsigned *flags)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

static CUresult get_priority(CUstream stream, int *priority)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

#define STREAM(handle) sim_stream_find(handle, per_thread)

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return SIM_CALL(cuStreamCreate, SIM_CONTEXT, create(stream, flags, 0));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    return SIM_CALL(cuStreamCreateWithPriority, SIM_CONTEXT, create(stream, flags, priority));
}

CUresult cuStreamDestroy(CUstream stream)
{
    return SIM_CALL(cuStreamDestroy, SIM_CONTEXT, destroy(stream));
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    return SIM_CALL(cuStreamDestroy_v2, SIM_CONTEXT, destroy(stream));
}

CUresult cuCtxSynchronize(void)
{
    return SIM_CALL(cuCtxSynchronize, SIM_CONTEXT, synchronize_given(NULL));
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    return SIM_CALL(cuCtxSynchronize_v2, SIM_CONTEXT, synchronize_given(context));
}

SIM_TWO_CALLS(cuStreamSynchronize, ptsz, (CUstream stream), SIM_CONTEXT,
              synchronize(STREAM(stream)))
SIM_TWO_CALLS(cuStreamQuery, ptsz, (CUstream stream), SIM_CONTEXT, query(STREAM(stream)))
SIM_TWO_CALLS(cuLaunchHostFunc, ptsz, (CUstream stream, CUhostFn function, void *argument),
              SIM_CONTEXT, launch_host(STREAM(stream), function, argument))
SIM_TWO_CALLS(cuStreamAddCallback, ptsz,
              (CUstream stream, CUstreamCallback function, void *user_data, unsigned int flags),
              SIM_CONTEXT, ((void)flags, add_callback(STREAM(stream), stream, function, user_data)))
SIM_TWO_CALLS(cuStreamGetCtx, ptsz, (CUstream stream, CUcontext *context), SIM_CONTEXT,
              get_context(STREAM(stream), context))
SIM_TWO_CALLS(cuStreamGetCtx_v2, ptsz, (CUstream stream, CUcontext *context, CUgreenCtx *green),
              SIM_CONTEXT, get_contexts(STREAM(stream), context, green))
SIM_TWO_CALLS(cuStreamGetDevice, ptsz, (CUstream stream, CUdevice *device), SIM_CONTEXT,
              get_device(STREAM(stream), device))
SIM_TWO_CALLS(cuStreamGetId, ptsz, (CUstream stream, unsigned long long *id), SIM_CONTEXT,
              get_id(STREAM(stream), id))
SIM_TWO_CALLS(cuStreamGetFlags, ptsz, (CUstream stream, unsigned int *flags), SIM_CONTEXT,
              get_flags(STREAM(stream), flags))
SIM_TWO_CALLS(cuStreamGetPriority, ptsz, (CUstream stream, int *priority), SIM_CONTEXT,
              get_priority(STREAM(stream), priority))
