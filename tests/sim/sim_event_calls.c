/* Events: a stream and a ticket, remembered. */

#include <stdlib.h>
#include <time.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_pool.h"
#include "sim_stream.h"

#define EVENT_MAGIC 0x45564e31u

static bool is_event(CUevent event)
{
    return event != NULL && event->magic == EVENT_MAGIC;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static CUresult create(CUevent *out, unsigned flags)
{
    CUevent event = out != NULL ? calloc(1, sizeof(*event)) : NULL;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (event == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->magic = EVENT_MAGIC;
    event->flags = flags;
    event->context = sim_context_current();
    *out = event;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUevent event)
{
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    event->magic = 0;
    free(event);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream)
{
    if (!is_event(event) || stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    event->capture = stream->capture;
    if (stream->capture != NULL)
        return sim_capture_mark(stream);
    event->stream = stream;
    event->ticket = sim_stream_mark(stream);
    event->recorded_ns = now_ns();
    return CUDA_SUCCESS;
}

/* Waiting for an event of a capture draws the waiting stream into that capture. */
static CUresult wait_event(CUstream stream, CUevent event)
{
    if (!is_event(event) || stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture != NULL || stream->capture != NULL)
        return sim_capture_join(stream, event->capture);
    if (event->stream == NULL)
        return CUDA_SUCCESS;
    return sim_stream_after(stream, event->stream, event->ticket);
}

static CUresult query(CUevent event)
{
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture != NULL)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (event->stream == NULL || sim_stream_reached(event->stream, event->ticket))
        return CUDA_SUCCESS;
    return CUDA_ERROR_NOT_READY;
}

static CUresult synchronize(CUevent event)
{
    CUresult result = query(event);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
        return result;
    if (event->stream == NULL)
        return CUDA_SUCCESS;
    sim_stream_observe(event->stream, event->ticket);
    sim_pools_settle();
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end)
{
    if (!is_event(start) || !is_event(end))
        return CUDA_ERROR_INVALID_HANDLE;
    if (query(start) != CUDA_SUCCESS || query(end) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)(int64_t)(end->recorded_ns - start->recorded_ns) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    return SIM_CALL(cuEventCreate, SIM_CONTEXT, create(event, flags));
}

CUresult cuEventDestroy(CUevent event)
{
    return SIM_CALL(cuEventDestroy, SIM_CONTEXT, destroy(event));
}

CUresult cuEventDestroy_v2(CUevent event)
{
    return SIM_CALL(cuEventDestroy_v2, SIM_CONTEXT, destroy(event));
}

CUresult cuEventQuery(CUevent event)
{
    return SIM_CALL(cuEventQuery, SIM_UNSAFE, query(event));
}

CUresult cuEventSynchronize(CUevent event)
{
    return SIM_CALL(cuEventSynchronize, SIM_UNSAFE, synchronize(event));
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return SIM_CALL(cuEventElapsedTime, SIM_CONTEXT, elapsed(milliseconds, start, end));
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    return SIM_CALL(cuEventElapsedTime_v2, SIM_CONTEXT, elapsed(milliseconds, start, end));
}

SIM_TWO_CALLS(cuEventRecord, ptsz, (CUevent event, CUstream stream), SIM_CONTEXT,
              record(event, sim_stream_find(stream, per_thread)))
SIM_TWO_CALLS(cuEventRecordWithFlags, ptsz, (CUevent event, CUstream stream, unsigned int flags),
              SIM_CONTEXT, ((void)flags, record(event, sim_stream_find(stream, per_thread))))
SIM_TWO_CALLS(cuStreamWaitEvent, ptsz, (CUstream stream, CUevent event, unsigned int flags),
              SIM_CONTEXT, ((void)flags, wait_event(sim_stream_find(stream, per_thread), event)))
