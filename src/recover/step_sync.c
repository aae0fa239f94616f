#include "step_sync.h"

#include <stdatomic.h>
#include <stddef.h>

#include "../base/memory.h"
#include "../base/os.h"
#include "../cuda/driver.h"
#include "../diagnose/pool_sum.h"
#include "../diagnose/saturate.h"
#include "../track/pool.h"
#include "../track/stream_use.h"

#define FIRST_NAP_NS 20000u
#define LONGEST_NAP_NS 2000000u

/* What no driver call here answers: the stream, or its context, is no more, or is captured. */
#define GONE CUDA_ERROR_NOT_FOUND

static bool concerns(const struct gos_diagnosis *diagnosis,
                     const struct gos_stream_evidence *stream)
{
    return stream->freed_bytes > 0 && (int)stream->device == diagnosis->device;
}

/* Still, when what earlier steps freed and what pools keep idle is counted; 0: unknown, or none. */
static uint64_t missing_bytes(const struct gos_ladder *ladder)
{
    const struct gos_verdict *verdict = &ladder->diagnosis->verdict;
    uint64_t gained_bytes = gos_beyond(gos_driver_free_bytes(), ladder->free_bytes);

    return gos_beyond(verdict->short_bytes, verdict->idle_bytes + gained_bytes);
}

bool gos_step_sync_is_too_little(const struct gos_ladder *ladder)
{
    const struct gos_diagnosis *diagnosis = ladder->diagnosis;

    return gos_pool_freed_bytes(diagnosis->evidence, (uint32_t)diagnosis->device) <
           missing_bytes(ladder);
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

/* As gos_pending_drained wants it: of the two default streams only the one that was drained. */
static uint64_t drained_number(const struct gos_stream_evidence *stream)
{
    if (stream->stream)
        return stream->stream;
    return (uint64_t)(uintptr_t)(stream->per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
}

/*
 * One stream that is waited for.  The default streams belong to the context
 * that was current at the free; other streams carry theirs with them.
 */
struct watched {
    const struct gos_stream_evidence *stream;
    CUevent event;   /* while result is CUDA_ERROR_NOT_READY */
    CUresult result; /* CUDA_SUCCESS: drained */
    bool in_vain;    /* it was given up before */
};

struct watch {
    struct watched *streams;
    size_t count;
    uint64_t drained_bytes;
    uint64_t wanted_bytes; /* 0: all that there is */
    bool drained;
};

static bool enter(const struct gos_stream_evidence *stream)
{
    return stream->context && gos_driver.cuCtxPushCurrent && gos_driver.cuCtxPopCurrent &&
           gos_driver.cuCtxPushCurrent((CUcontext)(uintptr_t)stream->context) == CUDA_SUCCESS;
}

static void leave(bool entered)
{
    CUcontext popped;

    if (entered)
        gos_driver.cuCtxPopCurrent(&popped);
}

static void begin(struct watched *watched, const struct gos_stream_evidence *stream)
{
    CUstream handle = (CUstream)(uintptr_t)stream->stream;
    uint32_t device;

    *watched = (struct watched){.stream = stream, .result = GONE, .in_vain = is_given_up(stream)};
    if (!handle && stream->per_thread)
        handle = CU_STREAM_PER_THREAD;
    if (stream->context && !gos_context_device(stream->context, &device))
        return;
    bool entered = enter(stream);
    watched->result = mark(handle, &watched->event);
    leave(entered);
    if (watched->result == CUDA_SUCCESS)
        watched->result = CUDA_ERROR_NOT_READY;
}

/* The query alone is not the seeing; synchronizing what has come to pass does not wait. */
static void look(struct watched *watched)
{
    bool entered = enter(watched->stream);

    watched->result = gos_driver.cuEventQuery(watched->event);
    if (watched->result == CUDA_SUCCESS)
        watched->result = gos_driver.cuEventSynchronize(watched->event);
    if (watched->result != CUDA_ERROR_NOT_READY)
        gos_driver.cuEventDestroy(watched->event);
    leave(entered);
    if (watched->result == CUDA_SUCCESS)
        gos_pending_drained(drained_number(watched->stream), watched->stream->context);
}

/* Is there any that is still worth waiting for? */
static bool look_at_all(struct watch *watch)
{
    bool is_waiting = false;

    for (size_t i = 0; i < watch->count; i++) {
        struct watched *watched = &watch->streams[i];

        if (watched->result != CUDA_ERROR_NOT_READY)
            continue;
        look(watched);
        if (watched->result == CUDA_SUCCESS) {
            watch->drained = true;
            watch->drained_bytes += watched->stream->freed_bytes;
        }
        is_waiting |= watched->result == CUDA_ERROR_NOT_READY && !watched->in_vain;
    }
    return is_waiting;
}

static bool is_done(const struct watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->streams[i].result == CUDA_ERROR_NOT_READY)
            return false;
    return true;
}

static bool has_enough(const struct watch *watch)
{
    return watch->wanted_bytes && watch->drained_bytes >= watch->wanted_bytes;
}

/*
 * Polled, so that there is a time limit: a stream may be waiting for something
 * that never comes.  Naps grow from 20 us to 2 ms.
 */
static void wait_for(struct watch *watch, uint64_t until_ns)
{
    for (uint64_t nap_ns = FIRST_NAP_NS;
         look_at_all(watch) && !has_enough(watch) && gos_os.monotonic_ns() < until_ns;
         nap_ns = nap_ns < LONGEST_NAP_NS ? nap_ns * 2 : nap_ns)
        gos_os.sleep_ns(nap_ns);
}

static void note(struct gos_step_record *record, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return;
    if (result == GONE) {
        record->reason = "a stream was destroyed or captured meanwhile";
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

/* What was not waited for to the end is neither late nor given up. */
static void end(struct watched *watched, bool to_the_end, struct gos_step_record *record)
{
    bool is_late = watched->result == CUDA_ERROR_NOT_READY;

    if (is_late) {
        bool entered = enter(watched->stream);
        gos_driver.cuEventDestroy(watched->event);
        leave(entered);
    }
    if (is_late && !to_the_end)
        return;
    remember(watched->stream, !is_late);
    note(record, watched->result);
}

static struct watch begin_all(const struct gos_diagnosis *diagnosis, struct watched *streams)
{
    const struct gos_evidence *evidence = diagnosis->evidence;
    struct watch watch = {.streams = streams};

    for (size_t i = 0; i < evidence->stream_count; i++)
        if (concerns(diagnosis, &evidence->streams[i]))
            begin(&streams[watch.count++], &evidence->streams[i]);
    return watch;
}

static void drain(struct gos_ladder *ladder, struct watch *watch, struct gos_step_record *record)
{
    bool is_too_little = gos_step_sync_is_too_little(ladder);

    watch->wanted_bytes = ladder->sync_left_some ? 0 : missing_bytes(ladder);
    wait_for(watch, is_too_little ? 0 : ladder->sync_until_ns);
    ladder->sync_left_some = has_enough(watch) && !is_done(watch);
    if (is_too_little && !is_done(watch))
        record->reason = "what is still at work is too little to be waited for";
    for (size_t i = 0; i < watch->count; i++)
        end(&watch->streams[i], !is_too_little && !ladder->sync_left_some, record);
}
static bool all_drained(const struct watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->streams[i].result != CUDA_SUCCESS)
            return false;
    return true;
}

bool gos_step_sync_run(struct gos_ladder *ladder, struct gos_step_record *record)
{
    size_t bytes = ladder->diagnosis->evidence->stream_count * sizeof(struct watched);
    struct watched *streams = can_run() ? gos_memory_alloc(bytes) : NULL;

    record->result = "no help";
    if (!streams) {
        record->result = "error";
        record->reason = "streams could not be waited for";
        return false;
    }
    struct watch watch = begin_all(ladder->diagnosis, streams);
    drain(ladder, &watch, record);
    record->is_whole = all_drained(&watch);
    /* More was freed on a stream than its pool still has, where the host saw it before. */
    record->given_bytes = gos_lesser(watch.drained_bytes, ladder->diagnosis->verdict.pending_bytes);
    gos_memory_free(streams, bytes);
    return watch.drained;
}
