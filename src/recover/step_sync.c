#include "step_sync.h"

#include <stdatomic.h>
#include <stddef.h>

#include "../base/os.h"
#include "../cuda/driver.h"
#include "../track/pool.h"
#include "../track/stream_use.h"

#define FIRST_NAP_NS 20000u
#define LONGEST_NAP_NS 2000000u

/* What no driver call here answers: the stream, or its context, is no more. */
#define GONE CUDA_ERROR_NOT_FOUND

static bool concerns(const struct gos_diagnosis *diagnosis,
                     const struct gos_stream_evidence *stream)
{
    return stream->freed_bytes > 0 && (int)stream->device == diagnosis->device;
}

bool gos_step_sync_may_help(const struct gos_ladder *ladder, const char **why_not)
{
    const struct gos_diagnosis *diagnosis = ladder->diagnosis;
    const struct gos_evidence *evidence = diagnosis->evidence;

    for (size_t i = 0; i < evidence->stream_count; i++)
        if (concerns(diagnosis, &evidence->streams[i]))
            return true;
    *why_not = "no stream has frees that are pending";
    return false;
}

/*
 * Streams that did not finish within the budget: a kernel that never ends must
 * not cost every later failure the same wait.  Until one of them is seen to
 * have finished it is asked once and not waited for.
 */
#define GIVEN_UP_MAX 16
static _Atomic uint64_t given_up[GIVEN_UP_MAX];

static _Atomic uint64_t *slot_of(const struct gos_stream_evidence *stream, uint64_t *key)
{
    *key = (stream->stream * 31 + stream->context) * 2 + stream->per_thread + 1;
    return &given_up[(*key * 0x9e3779b97f4a7c15u >> 32) % GIVEN_UP_MAX];
}

static bool is_given_up(const struct gos_stream_evidence *stream)
{
    uint64_t key;
    const _Atomic uint64_t *slot = slot_of(stream, &key);

    return atomic_load(slot) == key;
}

static void remember(const struct gos_stream_evidence *stream, bool finished)
{
    uint64_t key;
    _Atomic uint64_t *slot = slot_of(stream, &key);

    if (!finished)
        atomic_store(slot, key);
    else if (atomic_load(slot) == key)
        atomic_store(slot, 0);
}

/*
 * An event behind what the stream has been given so far: it comes to pass
 * whatever other threads give to the stream meanwhile, and after it the stream
 * itself is no longer needed.
 */
static CUresult mark(CUstream handle, CUevent *event)
{
    CUresult result = gos_driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);

    if (result != CUDA_SUCCESS)
        return result;
    int use = gos_stream_use_begin((uint64_t)(uintptr_t)handle);
    result = use < 0 ? GONE : gos_driver.cuEventRecord(*event, handle);
    if (use >= 0)
        gos_stream_use_end(use);
    if (result != CUDA_SUCCESS)
        gos_driver.cuEventDestroy(*event);
    return result;
}

/*
 * Polled, so that there is a time limit: a stream may be waiting for something
 * that never comes.  Naps grow from 20 us to 2 ms.
 */
static CUresult poll(CUevent event, uint64_t deadline_ns)
{
    for (uint64_t nap_ns = FIRST_NAP_NS;; nap_ns = nap_ns < LONGEST_NAP_NS ? nap_ns * 2 : nap_ns) {
        CUresult result = gos_driver.cuEventQuery(event);
        if (result != CUDA_ERROR_NOT_READY || gos_os.monotonic_ns() >= deadline_ns)
            return result;
        gos_os.sleep_ns(nap_ns);
    }
}

/* The query alone is not the seeing; synchronizing what has come to pass does not wait. */
static CUresult wait_for(CUstream handle, uint64_t deadline_ns)
{
    CUevent event;
    CUresult result = mark(handle, &event);

    if (result != CUDA_SUCCESS)
        return result;
    result = poll(event, deadline_ns);
    if (result == CUDA_SUCCESS)
        result = gos_driver.cuEventSynchronize(event);
    gos_driver.cuEventDestroy(event);
    return result;
}

/* As gos_pending_drained wants it: of the two default streams only the one that was drained. */
static uint64_t drained_number(const struct gos_stream_evidence *stream)
{
    if (stream->stream)
        return stream->stream;
    return (uint64_t)(uintptr_t)(stream->per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
}

/*
 * The default streams belong to the context that was current at the free.
 * Other streams carry theirs with them.
 */
static CUresult drain(const struct gos_stream_evidence *stream, uint64_t deadline_ns)
{
    CUstream handle = (CUstream)(uintptr_t)stream->stream;
    CUcontext popped;
    uint32_t device;
    bool pushed = false;

    if (!handle && stream->per_thread)
        handle = CU_STREAM_PER_THREAD;
    if (stream->context && !gos_context_device(stream->context, &device))
        return GONE;
    if (stream->context && gos_driver.cuCtxPushCurrent && gos_driver.cuCtxPopCurrent)
        pushed = gos_driver.cuCtxPushCurrent((CUcontext)(uintptr_t)stream->context) == CUDA_SUCCESS;
    CUresult result = wait_for(handle, is_given_up(stream) ? 0 : deadline_ns);
    remember(stream, result != CUDA_ERROR_NOT_READY);
    if (pushed)
        gos_driver.cuCtxPopCurrent(&popped);
    if (result == CUDA_SUCCESS)
        gos_pending_drained(drained_number(stream), stream->context);
    return result;
}

static void note(struct gos_step_record *record, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return;
    if (result == GONE) {
        record->reason = "a stream was destroyed meanwhile";
    } else if (result == CUDA_ERROR_NOT_READY) {
        record->result = "timed out";
        record->reason = "a stream did not finish in time";
    } else {
        record->result = "error";
        record->reason = "a stream reported an error";
        record->cuda_result = (int)result;
    }
}

static bool can_run(void)
{
    return gos_driver.cuEventCreate && gos_driver.cuEventRecord && gos_driver.cuEventQuery &&
           gos_driver.cuEventSynchronize && gos_driver.cuEventDestroy;
}

bool gos_step_sync_run(struct gos_ladder *ladder, struct gos_step_record *record)
{
    const struct gos_evidence *evidence = ladder->diagnosis->evidence;
    bool drained = false;

    record->result = "no help";
    for (size_t i = 0; can_run() && i < evidence->stream_count; i++) {
        if (!concerns(ladder->diagnosis, &evidence->streams[i]))
            continue;
        CUresult result = drain(&evidence->streams[i], ladder->deadline_ns);
        drained |= result == CUDA_SUCCESS;
        note(record, result);
    }
    return drained;
}
