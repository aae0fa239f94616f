#include "call.h"

#include <errno.h>

#include "../base/hot.h"
#include "../base/loss.h"
#include "../recover/reserve.h"
#include "../track/allowance.h"
#include "../track/event.h"
#include "../track/graph_memory.h"
#include "../track/history.h"
#include "../track/pool.h"
#include "../track/sample.h"
#include "../track/unwind.h"
#include "story.h"
#include "failure.h"
#include "place.h"

static bool is_host_kind(enum gos_kind kind)
{
    return kind == GOS_KIND_HOST || kind == GOS_KIND_REGISTERED || kind == GOS_KIND_ADDRESS;
}

static uint32_t site_of(const struct gos_call *call)
{
    if (!gos_unwind_is_wanted() || (call->kind == GOS_KIND_POOL && !gos_sample_takes(call->bytes)))
        return 0;
    return gos_unwind_site_now();
}

/* What comes from a pool is what the pool is made of, and the graph's while one is captured. */
static inline enum gos_kind kind_from_pool(const struct gos_call *call,
                                           const struct gos_place *place)
{
    if (gos_capture_includes(call->stream, call->per_thread))
        return GOS_KIND_GRAPH;
    if (__builtin_expect(place->is_managed, 0))
        return GOS_KIND_MANAGED;
    if (__builtin_expect(call->pool && place->device == GOS_DEVICE_HOST, 0))
        return GOS_KIND_HOST;
    return GOS_KIND_POOL;
}

/*
 * A node of a graph is on the books from a launch on; where the driver cannot
 * tell whose node it is, at once.  What is lost is counted.
 */
static __attribute__((cold, noinline)) void enter_node(const struct gos_call *call,
                                                       const struct gos_allocation *allocation)
{
    uint64_t graph = call->kind == GOS_KIND_GRAPH
                         ? call->pool
                         : gos_capture_graph(call->stream, call->per_thread);

    if (graph)
        gos_graph_allocates(graph, allocation);
    else
        gos_registry_add(allocation);
}

static inline __attribute__((always_inline)) void record(const struct gos_call *call,
                                                         uint64_t address, enum gos_kind kind,
                                                         const struct gos_place *place)
{
    if (__builtin_expect(gos_reserve_is_lacking(place->device), 0))
        gos_reserve_take(place->device, place->context);
    struct gos_allocation allocation = {
        .address = address,
        .bytes = call->bytes,
        .kind = kind,
        .device = is_host_kind(kind) ? GOS_DEVICE_HOST : place->device,
        .site = site_of(call),
        .home = place->home,
    };
    if (__builtin_expect(kind == GOS_KIND_GRAPH, 0))
        enter_node(call, &allocation);
    else
        gos_registry_add(&allocation); /* what it loses it counts */
    gos_history_tick();
}

static inline void record_from_pool(const struct gos_call *call, uint64_t address)
{
    const struct gos_place *place = gos_place_of_stream(call->stream, call->pool);

    record(call, address, kind_from_pool(call, place), place);
}

static __attribute__((noinline)) void record_other(const struct gos_call *call, uint64_t address)
{
    enum gos_kind kind = (enum gos_kind)call->kind;

    if (call->device == GOS_DEVICE_CURRENT)
        record(call, address, kind, gos_place_of_context());
    else
        record(call, address, kind, &(struct gos_place){.device = (uint32_t)call->device});
}

GOS_HOT CUresult gos_call_made(struct gos_call *call, CUresult result, uint64_t address)
{
    if (__builtin_expect(result == CUDA_SUCCESS && address && gos_call_tracks(), 1)) {
        int *error = gos_thread_errno();
        int saved = *error;
        gos_thread.depth++;
        if (call->kind == GOS_KIND_POOL)
            record_from_pool(call, address);
        else
            record_other(call, address);
        gos_thread.depth--;
        *error = saved;
    }
    return gos_call_done(call, result);
}

/* What another process owns was not allocated here, and says nothing about what is free. */
static bool is_owned(const struct gos_call *call)
{
    return call->kind != GOS_KIND_IMPORTED && call->kind != GOS_KIND_HANDLE;
}

/* What we, or another thread's recovery, made succeed is nothing that the caller survived. */
static void end_story(struct gos_call *call, CUresult result)
{
    if (call->failure)
        gos_failure_close(call->failure, result);
    else if (call->shared)
        gos_story_recovered();
    else if (is_owned(call))
        gos_story_closed_by(call->bytes, (enum gos_kind)call->kind,
                            gos_entrypoint_name((enum gos_entrypoint)call->entry));
    call->failure = NULL;
}

__attribute__((cold, noinline)) CUresult gos_call_done_slow(struct gos_call *call, CUresult result)
{
    int saved = errno;

    if (call->rehearsed)
        gos_rehearsal_settle(call, result);
    if (call->failure || (gos_call_ends_story(call, result) && gos_call_tracks())) {
        gos_thread.depth++;
        end_story(call, result);
        gos_thread.depth--;
    }
    errno = saved;
    return result;
}

__attribute__((cold, noinline)) bool gos_call_failed(struct gos_call *call, CUresult result)
{
    int saved = errno;
    bool again = false;

    if (call->first_result == CUDA_SUCCESS)
        call->first_result = result;
    if (call->rehearsed)
        gos_rehearsal_settle(call, result);
    if (gos_call_tracks()) {
        gos_thread.depth++;
        again = gos_failure_handle(call, result);
        gos_thread.depth--;
    }
    errno = saved;
    return again;
}

__attribute__((cold, noinline)) void gos_call_note(enum gos_entrypoint entry, CUresult result)
{
    gos_event_add(&(struct gos_event){
        .what = gos_entrypoint_name(entry), .result = (int)result, .device = -1});
}

GOS_HOT void gos_free_begin_in(struct gos_free *free, enum gos_entrypoint entry,
                               enum gos_space space, uint64_t address)
{
    free->entry = (int16_t)entry;
    free->address = address;
    free->known = false;
    /* A signal handler may have interrupted us with a lock of the registry held. */
    if (address && gos_call_tracks()) {
        gos_thread.depth++;
        gos_allowance_hold();
        free->known = gos_registry_take(space, address, &free->gone);
        gos_thread.depth--;
    }
    gos_free_enters();
}

struct gos_free gos_free_begin(enum gos_entrypoint entry, enum gos_space space, uint64_t address)
{
    struct gos_free free = {.known = false};

    gos_free_begin_in(&free, entry, space, address);
    return free;
}

/*
 * CUDA_ERROR_DEINITIALIZED is the driver saying that the process is ending:
 * the memory is gone with it.
 */
static bool is_refused(CUresult result)
{
    return result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED;
}

/* Refused by the driver, or not on the books. */
static __attribute__((cold, noinline)) void end_unusual(const struct gos_free *free,
                                                        CUresult result)
{
    int saved = errno;

    if (is_refused(result)) {
        if (free->known) {
            gos_thread.depth++;
            gos_registry_restore(&free->gone);
            gos_thread.depth--;
        }
        if (gos_call_tracks())
            gos_call_note((enum gos_entrypoint)free->entry, result);
    } else if (!free->known && free->address && gos_call_tracks()) {
        gos_loss_count(GOS_LOSS_UNTRACKED);
    }
    errno = saved;
}

static inline CUresult end_free(const struct gos_free *free, CUresult result)
{
    gos_free_left();
    if (__builtin_expect(result != CUDA_SUCCESS || !free->known, 0))
        end_unusual(free, result);
    gos_allowance_let_go();
    return result;
}

/* From a pool, and not in stream order: the pool's count of what is in use does not notice. */
static __attribute__((cold, noinline)) void note_unordered(const struct gos_allocation *gone)
{
    int saved = errno;

    gos_thread.depth++;
    gos_pool_used_sticks(gos_home_get(gone->home).pool);
    gos_thread.depth--;
    errno = saved;
}

GOS_HOT CUresult gos_free_end(struct gos_free *free, CUresult result)
{
    if (__builtin_expect(free->known && free->gone.kind == GOS_KIND_POOL, 0) &&
        result == CUDA_SUCCESS)
        note_unordered(&free->gone);
    return end_free(free, result);
}

/* What a free in stream order gives back to a device, later. */
static bool is_pending(const struct gos_free *free)
{
    return free->known && (free->gone.kind == GOS_KIND_POOL || free->gone.kind == GOS_KIND_DEVICE);
}

/* Graph memory, or nothing that we know of: that is not there before the first launch. */
static bool may_be_captured(const struct gos_free *free)
{
    return free->address && gos_call_tracks() &&
           (!free->known || free->gone.kind == GOS_KIND_GRAPH);
}

static uint64_t graph_being_captured(uint64_t stream, bool per_thread)
{
    return gos_capture_includes(stream, per_thread) ? gos_capture_graph(stream, per_thread) : 0;
}

/*
 * Captured, the free is a node of the graph, and takes place when that is launched.
 * Not inlined: the cheapest call of all is not to make room for it.
 */
static __attribute__((cold, noinline)) void note_captured(struct gos_free *free, uint64_t stream,
                                                          bool per_thread)
{
    int saved = errno;
    uint64_t graph;

    if (!may_be_captured(free))
        return;
    gos_thread.depth++;
    graph = graph_being_captured(stream, per_thread);
    if (graph) {
        if (free->known)
            gos_registry_restore(&free->gone);
        gos_graph_frees(graph, free->address);
        free->address = 0; /* there is no more to say of it */
    }
    gos_thread.depth--;
    errno = saved;
}

static __attribute__((cold, noinline)) void
begin_pending(const struct gos_allocation *gone, uint64_t stream, uint64_t context, bool per_thread)
{
    gos_pending_add(&(struct gos_pending){.stream = stream,
                                          .context = context,
                                          .device = gone->device,
                                          .per_thread = per_thread,
                                          .bytes = gone->bytes,
                                          .count = 1});
}

static inline void add_pending(const struct gos_allocation *gone, uint64_t stream, bool per_thread)
{
    int *error = gos_thread_errno();
    int saved = *error;
    uint64_t context;

    gos_thread.depth++; /* a signal handler that frees must not meet our lock */
    context = gos_place_context_of_stream(stream);
    if (!gos_pending_add_again(stream, context, per_thread, gone->bytes))
        begin_pending(gone, stream, context, per_thread);
    gos_thread.depth--;
    *error = saved;
}

GOS_HOT CUresult gos_free_end_async(struct gos_free *free, CUresult result, CUstream stream,
                                    bool per_thread)
{
    if (__builtin_expect(result == CUDA_SUCCESS && is_pending(free), 1))
        add_pending(&free->gone, (uint64_t)(uintptr_t)stream, per_thread);
    else if (result == CUDA_SUCCESS && gos_graph_any())
        note_captured(free, (uint64_t)(uintptr_t)stream, per_thread);
    return end_free(free, result);
}
