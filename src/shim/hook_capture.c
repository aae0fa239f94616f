/*
 * Streams and captures: which streams are gone, and whether anything is being
 * captured, because then nothing may be tried.
 */
#include "call.h"

#include <errno.h>

#include "../cuda/driver.h"
#include "../track/graph_memory.h"
#include "../track/pool.h"
#include "../track/stream_use.h"
#include "../track/unwind.h"
#include "place.h"

static uint64_t number(CUstream stream)
{
    return (uint64_t)(uintptr_t)stream;
}

/* Stream 0 of the other ABI is a stream of the calling thread. */
static CUstream own(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

/* What is refused because of the capture is told with the line that began it. */
static void note_line(CUstream stream)
{
    int saved = errno;

    if (!gos_call_tracks() || !gos_unwind_is_wanted())
        return;
    gos_thread.depth++;
    gos_capture_begun_at(number(stream), gos_unwind_site_now());
    gos_thread.depth--;
    errno = saved;
}

/*
 * On the books before the driver captures: whoever is about to hand it the
 * stream for us either sees that, or is waited for.  A capture is lost by a
 * query of its stream, in whatever mode.
 */
static void begins(CUstream stream)
{
    if (!gos_shim_active())
        return;
    gos_capture_began(number(stream), gos_place_context_of_stream(number(stream)));
    note_line(stream);
    gos_stream_use_wait(number(stream));
}

/* Into a graph that the host has already. */
static CUresult began_in_graph(CUresult result, CUstream stream)
{
    if (result != CUDA_SUCCESS && gos_shim_active())
        gos_capture_ended(number(stream));
    return result;
}

static CUresult began(CUresult result, CUstream stream)
{
    began_in_graph(result, stream);
    if (result == CUDA_SUCCESS && gos_shim_active())
        gos_capture_makes(number(stream), gos_capture_graph(number(stream), false));
    return result;
}

/* Refused (another thread's, no context), the capture goes on. */
static bool goes_on(CUresult result, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_CONTEXT)
        return result != CUDA_SUCCESS;
    return gos_driver.cuStreamIsCapturing &&
           gos_driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* An invalidated capture ends with an error, and ends all the same. */
static CUresult ended(CUresult result, CUstream stream)
{
    if (gos_shim_active() && !goes_on(result, stream)) {
        if (result != CUDA_SUCCESS)
            gos_graph_destroyed(gos_capture_made(number(stream)));
        gos_capture_ended(number(stream));
    }
    return result;
}

static bool is_created(CUstream stream)
{
    return stream != NULL && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
}

/*
 * Before the driver: afterwards the handle may already be another thread's new
 * stream.  True when a capture ends with it.
 */
static bool forget(CUstream stream)
{
    bool was_captured = false;

    if (gos_shim_active() && is_created(stream)) {
        gos_pending_stream_destroyed(number(stream));
        gos_graph_destroyed(gos_capture_made(number(stream)));
        was_captured = gos_capture_has(number(stream)) && gos_capture_ended(number(stream));
    }
    gos_stream_use_wait(number(stream));
    return was_captured;
}

static CUresult destroyed(CUresult result, CUstream stream, bool was_captured)
{
    if (was_captured && result != CUDA_SUCCESS)
        gos_capture_began(number(stream), gos_place_context_of_stream(number(stream)));
    return result;
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    bool was_captured = forget(hStream);

    return destroyed(GOS_REAL(cuStreamDestroy_v2)(hStream), hStream, was_captured);
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    bool was_captured = forget(hStream);

    return destroyed(GOS_REAL(cuStreamDestroy)(hStream), hStream, was_captured);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream)
{
    begins(hStream);
    return began(GOS_REAL(cuStreamBeginCapture)(hStream), hStream);
}

CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream hStream)
{
    begins(own(hStream));
    return began(GOS_REAL(cuStreamBeginCapture_ptsz)(hStream), own(hStream));
}

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    begins(hStream);
    return began(GOS_REAL(cuStreamBeginCapture_v2)(hStream, mode), hStream);
}

CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode)
{
    begins(own(hStream));
    return began(GOS_REAL(cuStreamBeginCapture_v2_ptsz)(hStream, mode), own(hStream));
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                             const CUgraphNode *dependencies,
                                             const CUgraphEdgeData *dependencyData,
                                             size_t numDependencies, CUstreamCaptureMode mode)
{
    begins(hStream);
    return began_in_graph(GOS_REAL(cuStreamBeginCaptureToGraph)(
                              hStream, hGraph, dependencies, dependencyData, numDependencies, mode),
                          hStream);
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph,
                                                  const CUgraphNode *dependencies,
                                                  const CUgraphEdgeData *dependencyData,
                                                  size_t numDependencies, CUstreamCaptureMode mode)
{
    begins(own(hStream));
    return began_in_graph(GOS_REAL(cuStreamBeginCaptureToGraph_ptsz)(
                              hStream, hGraph, dependencies, dependencyData, numDependencies, mode),
                          own(hStream));
}

CUresult CUDAAPI cuStreamBeginCaptureToCig(CUstream hStream,
                                           CUstreamCigCaptureParams *streamCigCaptureParams)
{
    begins(hStream);
    return began(GOS_REAL(cuStreamBeginCaptureToCig)(hStream, streamCigCaptureParams), hStream);
}

CUresult CUDAAPI cuStreamEndCaptureToCig(CUstream hStream)
{
    return ended(GOS_REAL(cuStreamEndCaptureToCig)(hStream), hStream);
}

CUresult CUDAAPI cuStreamBeginCaptureToCig_ptsz(CUstream hStream,
                                                CUstreamCigCaptureParams *streamCigCaptureParams)
{
    begins(own(hStream));
    return began(GOS_REAL(cuStreamBeginCaptureToCig_ptsz)(hStream, streamCigCaptureParams),
                 own(hStream));
}

CUresult CUDAAPI cuStreamEndCaptureToCig_ptsz(CUstream hStream)
{
    return ended(GOS_REAL(cuStreamEndCaptureToCig_ptsz)(hStream), own(hStream));
}

CUresult CUDAAPI cuStreamBeginRecaptureToGraph(CUstream hStream, CUstreamCaptureMode mode,
                                               CUgraph hGraph,
                                               CUgraphRecaptureCallback callbackFunc,
                                               void *userData)
{
    begins(hStream);
    return began_in_graph(
        GOS_REAL(cuStreamBeginRecaptureToGraph)(hStream, mode, hGraph, callbackFunc, userData),
        hStream);
}

CUresult CUDAAPI cuStreamBeginRecaptureToGraph_ptsz(CUstream hStream, CUstreamCaptureMode mode,
                                                    CUgraph hGraph,
                                                    CUgraphRecaptureCallback callbackFunc,
                                                    void *userData)
{
    begins(own(hStream));
    return began_in_graph(
        GOS_REAL(cuStreamBeginRecaptureToGraph_ptsz)(hStream, mode, hGraph, callbackFunc, userData),
        own(hStream));
}

CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    return ended(GOS_REAL(cuStreamEndCapture)(hStream, phGraph), hStream);
}

CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph)
{
    return ended(GOS_REAL(cuStreamEndCapture_ptsz)(hStream, phGraph), own(hStream));
}
