/* Stream capture: rules of the modes, invalidation, and entry points. */

#include <stdlib.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_stream.h"

static struct sim_capture *captures;
static uint64_t last_id;

static bool is_running(const struct sim_capture *capture)
{
    return capture->status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * A thread's own captures forbid unsafe calls unless they are relaxed; other
 * threads' captures only if they are global.  A thread in relaxed mode may do
 * anything, one in thread-local mode has only its own captures to mind.
 */
static bool minds(const struct sim_thread *thread, const struct sim_capture *capture)
{
    if (!is_running(capture) || thread->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (capture->thread == thread)
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return thread->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult sim_capture_forbids(const struct sim_thread *thread)
{
    CUresult result = CUDA_SUCCESS;
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        if (!minds(thread, capture))
            continue;
        capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUresult sim_capture_check_wait(CUstream stream)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture == NULL)
        return sim_capture_forbids(sim_thread_self());
    stream->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

bool sim_capture_kill_all(void)
{
    bool any = false;
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        if (!is_running(capture))
            continue;
        capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        any = true;
    }
    return any;
}

void sim_capture_abandon(CUstream stream)
{
    if (stream->capture != NULL)
        stream->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    stream->capture = NULL;
}

static CUresult fail(struct sim_capture *capture, CUresult result)
{
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return result;
}

CUresult sim_capture_join(CUstream stream, struct sim_capture *capture)
{
    if (capture == NULL || !is_running(capture))
        return stream->capture != NULL ? fail(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                                       : CUDA_ERROR_CAPTURED_EVENT;
    if (stream->capture != NULL && stream->capture != capture)
        return fail(stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    stream->capture = capture;
    return CUDA_SUCCESS;
}

static CUresult check(CUstream stream)
{
    return stream->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED
               ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               : CUDA_SUCCESS;
}

CUresult sim_capture_mark(CUstream stream)
{
    return check(stream);
}

static CUresult add(CUstream stream, CUgraphNodeType type, CUgraphNode *node)
{
    CUresult result = check(stream);
    if (result != CUDA_SUCCESS)
        return result;
    *node = sim_graph_add(stream->capture->graph, type);
    return *node != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_capture_work(CUstream stream, CUgraphNodeType type)
{
    CUgraphNode node = NULL;
    return add(stream, type, &node);
}

CUresult sim_capture_host(CUstream stream, CUhostFn function, void *argument)
{
    CUgraphNode node = NULL;
    CUresult result = add(stream, CU_GRAPH_NODE_TYPE_HOST, &node);
    if (result == CUDA_SUCCESS) {
        node->function = function;
        node->argument = argument;
    }
    return result;
}

CUresult sim_capture_take(CUstream stream, int device, uint64_t bytes, CUdeviceptr *address)
{
    CUresult result = check(stream);
    if (result != CUDA_SUCCESS)
        return result;
    CUgraphNode node = sim_graph_add_allocation(stream->capture->graph, device, bytes);
    if (node == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = node->range->base;
    return CUDA_SUCCESS;
}

/* Only memory of the same graph can be freed in it. */
CUresult sim_capture_give(CUstream stream, const struct sim_range *range)
{
    CUgraphNode node = NULL;
    CUgraphNode owner = range->kind == SIM_GRAPH_OWNED ? range->owner : NULL;
    if (owner == NULL || owner->graph != stream->capture->graph)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = add(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, &node);
    if (result == CUDA_SUCCESS)
        node->allocation = owner;
    return result;
}

/* Into `graph`, or into a new one. */
static CUresult begin(CUstream stream, CUstreamCaptureMode mode, CUgraph graph)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream == stream->context->null_stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct sim_capture *capture = calloc(1, sizeof(*capture));
    bool is_given = graph != NULL;
    graph = is_given ? graph : sim_graph_make();
    if (capture == NULL || graph == NULL) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *capture = (struct sim_capture){.id = ++last_id,
                                    .mode = mode,
                                    .status = CU_STREAM_CAPTURE_STATUS_ACTIVE,
                                    .thread = sim_thread_self(),
                                    .origin = stream,
                                    .graph = graph,
                                    .graph_is_given = is_given,
                                    .next = captures};
    captures = capture;
    stream->capture = capture;
    return CUDA_SUCCESS;
}

static CUresult end(CUstream stream, CUgraph *out)
{
    struct sim_capture *capture = stream != NULL ? stream->capture : NULL;
    if (capture == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return fail(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sim_thread_self())
        return fail(capture, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    bool is_valid = capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    capture->status = CU_STREAM_CAPTURE_STATUS_NONE;
    sim_stream_leave_capture(capture);
    *out = is_valid ? capture->graph : NULL;
    if (!is_valid && !capture->graph_is_given)
        sim_graph_release(capture->graph);
    capture->graph = NULL;
    return is_valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static CUresult get_status(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    if (stream == NULL || status == NULL)
        return stream == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    *status = stream->capture != NULL ? stream->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
    if (id != NULL && stream->capture != NULL)
        *id = stream->capture->id;
    return CUDA_SUCCESS;
}

static CUresult get_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                         CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
    CUresult result = get_status(stream, status, id);
    if (result != CUDA_SUCCESS || stream->capture == NULL)
        return result;
    if (graph != NULL)
        *graph = stream->capture->graph;
    if (dependencies != NULL)
        *dependencies = NULL;
    if (count != NULL)
        *count = 0;
    return CUDA_SUCCESS;
}

static CUresult get_info_edges(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                               CUgraph *graph, const CUgraphNode **dependencies,
                               const CUgraphEdgeData **edges, size_t *count)
{
    if (edges != NULL)
        *edges = NULL;
    return get_info(stream, status, id, graph, dependencies, count);
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
    struct sim_thread *thread = sim_thread_self();
    if (mode == NULL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

#define STREAM(handle) sim_stream_find(handle, per_thread)

SIM_TWO_CALLS(cuStreamBeginCapture, ptsz, (CUstream stream), SIM_CONTEXT,
              begin(STREAM(stream), CU_STREAM_CAPTURE_MODE_GLOBAL, NULL))
SIM_TWO_CALLS(cuStreamBeginCapture_v2, ptsz, (CUstream stream, CUstreamCaptureMode mode),
              SIM_CONTEXT, begin(STREAM(stream), mode, NULL))
SIM_TWO_CALLS(cuStreamBeginCaptureToGraph, ptsz,
              (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
               const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),
              SIM_CONTEXT,
              ((void)dependencies, (void)edges, (void)count, begin(STREAM(stream), mode, graph)))
SIM_TWO_CALLS(cuStreamEndCapture, ptsz, (CUstream stream, CUgraph *graph), SIM_CONTEXT,
              end(STREAM(stream), graph))
SIM_TWO_CALLS(cuStreamIsCapturing, ptsz, (CUstream stream, CUstreamCaptureStatus *status),
              SIM_CONTEXT, get_status(STREAM(stream), status, NULL))
SIM_TWO_CALLS(cuStreamGetCaptureInfo, ptsz,
              (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id), SIM_CONTEXT,
              get_status(STREAM(stream), status, id))
SIM_TWO_CALLS(cuStreamGetCaptureInfo_v2, ptsz,
              (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
               const CUgraphNode **dependencies, size_t *count),
              SIM_CONTEXT, get_info(STREAM(stream), status, id, graph, dependencies, count))
SIM_TWO_CALLS(cuStreamGetCaptureInfo_v3, ptsz,
              (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
               const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count),
              SIM_CONTEXT,
              get_info_edges(STREAM(stream), status, id, graph, dependencies, edges, count))

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    return SIM_CALL(cuThreadExchangeStreamCaptureMode, SIM_STARTED, exchange(mode));
}
