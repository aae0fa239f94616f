#include "step_sync.h"

#include <stddef.h>

#include "../base/os.h"
#include "../cuda/driver.h"
#include "../track/pool.h"

#define FIRST_NAP_NS 20000u
#define LONGEST_NAP_NS 2000000u

static bool concerns(const struct gos_diagnosis *diagnosis,
                     const struct gos_stream_evidence *stream)
{
    return stream->freed_bytes > 0 && (int)stream->device == diagnosis->device;
}

bool gos_step_sync_may_help(const struct gos_diagnosis *diagnosis, const char **why_not)
{
    const struct gos_evidence *evidence = diagnosis->evidence;

    for (size_t i = 0; i < evidence->stream_count; i++)
        if (concerns(diagnosis, &evidence->streams[i]))
            return true;
    *why_not = "no stream has frees that are pending";
    return false;
}

/*
 * Polled, so that there is a time limit: a stream may be waiting for something
 * that never comes.  Naps grow from 20 us to 2 ms.
 */
static CUresult poll(CUstream stream, uint64_t deadline_ns)
{
    CUresult result;

    for (uint64_t nap_ns = FIRST_NAP_NS;; nap_ns = nap_ns < LONGEST_NAP_NS ? nap_ns * 2 : nap_ns) {
        result = gos_driver.cuStreamQuery(stream);
        if (result != CUDA_ERROR_NOT_READY || gos_os.monotonic_ns() >= deadline_ns)
            return result;
        gos_os.sleep_ns(nap_ns);
    }
}

/*
 * The default streams belong to the context that was current at the free.
 * Other streams carry theirs with them.
 */
static CUresult drain(const struct gos_stream_evidence *stream, uint64_t deadline_ns)
{
    CUstream handle = (CUstream)(uintptr_t)stream->stream;
    CUcontext popped;
    bool pushed = false;

    if (!handle && stream->per_thread)
        handle = CU_STREAM_PER_THREAD;
    if (stream->context && gos_driver.cuCtxPushCurrent && gos_driver.cuCtxPopCurrent)
        pushed = gos_driver.cuCtxPushCurrent((CUcontext)(uintptr_t)stream->context) == CUDA_SUCCESS;
    CUresult result = poll(handle, deadline_ns);
    if (result == CUDA_SUCCESS && gos_driver.cuStreamSynchronize)
        result = gos_driver.cuStreamSynchronize(handle); /* at once; this is the host's seeing */
    if (pushed)
        gos_driver.cuCtxPopCurrent(&popped);
    if (result == CUDA_SUCCESS)
        gos_pending_drained(stream->stream, stream->context);
    return result;
}

bool gos_step_sync_run(const struct gos_ladder *ladder, struct gos_step_record *record)
{
    const struct gos_evidence *evidence = ladder->diagnosis->evidence;
    bool drained = false;

    record->result = "no help";
    if (!gos_driver.cuStreamQuery)
        return false;
    for (size_t i = 0; i < evidence->stream_count; i++) {
        if (!concerns(ladder->diagnosis, &evidence->streams[i]))
            continue;
        CUresult result = drain(&evidence->streams[i], ladder->deadline_ns);
        drained |= result == CUDA_SUCCESS;
        if (result == CUDA_ERROR_NOT_READY) {
            record->result = "timed out";
            record->reason = "a stream did not finish in time";
        } else if (result != CUDA_SUCCESS) {
            record->result = "error";
            record->reason = "a stream reported an error";
            record->cuda_result = (int)result;
        }
    }
    return drained;
}
