/*
 * The life of one hooked call, as every hook writes it:
 *
 *     struct gos_call call = gos_call_begin(GOS_EP_cuMemAlloc_v2, GOS_KIND_DEVICE, bytes);
 *     CUresult result;
 *     do
 *         result = GOS_REAL(cuMemAlloc_v2)(pointer, bytes);
 *     while (gos_call_again(&call, result));
 *     return gos_call_made(&call, result, address);
 *
 * gos_call_again is where a failure lives: it gathers evidence, diagnoses,
 * runs one step of the ladder and says whether the driver should be asked once
 * more.  When it says no, the report is on disk.
 *
 * Every function here is hook context and leaves errno alone.
 */
#ifndef GOS_SHIM_CALL_H
#define GOS_SHIM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/thread.h"
#include "../cuda/driver.h"
#include "../cuda/entrypoint.h"
#include "../track/registry.h"
#include "story.h"
#include "rehearsal.h"
#include "state.h"

struct gos_failure;
struct gos_watched;

struct gos_call {
    uint64_t bytes; /* asked for; 0 for a watched call */
    uint64_t stream;
    union {
        uint64_t pool;                     /* of a memory node the graph */
        const struct gos_watched *watched; /* kind NONE: what tells its need, or NULL */
    };
    struct gos_failure *failure; /* NULL while nothing failed */
    int16_t entry;               /* enum gos_entrypoint */
    uint8_t kind;                /* enum gos_kind */
    bool per_thread;             /* stream 0 is the per-thread default stream */
    bool shared;                 /* asked again because another thread recovered memory */
    bool rehearsed;              /* rehearsal.h knows more of it */
    bool replaceable;            /* its hook goes by gos_call_goes_on and gos_call_answer */
    int16_t device;              /* ordinal, GOS_DEVICE_HOST, or GOS_DEVICE_CURRENT */
    CUresult first_result;       /* of a call that failed; CUDA_SUCCESS while none did */
    uint64_t substitute;         /* memory that serves the call in the driver's place, or 0 */
};

#define GOS_DEVICE_CURRENT (-1)

static inline struct gos_call gos_call_begin(enum gos_entrypoint entry, enum gos_kind kind,
                                             uint64_t bytes)
{
    return (struct gos_call){.entry = (int16_t)entry,
                             .kind = (uint8_t)kind,
                             .bytes = bytes,
                             .device = GOS_DEVICE_CURRENT};
}

/* A stream-ordered call; pool 0: the current pool of the stream's device. */
static inline struct gos_call gos_call_begin_async(enum gos_entrypoint entry, uint64_t bytes,
                                                   CUstream stream, CUmemoryPool pool,
                                                   bool per_thread)
{
    return (struct gos_call){.entry = (int16_t)entry,
                             .kind = (uint8_t)GOS_KIND_POOL,
                             .bytes = bytes,
                             .stream = (uint64_t)(uintptr_t)stream,
                             .pool = (uint64_t)(uintptr_t)pool,
                             .per_thread = per_thread,
                             .device = GOS_DEVICE_CURRENT};
}

/*
 * Before the driver is asked; `out` is where the result goes: without one the
 * driver has its own answer.  False: the call is refused, gos_call_refuse.
 */
static inline bool gos_call_admits(struct gos_call *call, const void *out)
{
    return !gos_rehearsal_is_on() || !out || gos_rehearsal_admits(call);
}

/* The driver's answer, taken back where there was hardly room and it does not fit. */
static inline CUresult gos_call_keep(struct gos_call *call, CUresult result, CUdeviceptr *pointer)
{
    return __builtin_expect(call->rehearsed, 0) ? gos_rehearsal_keep(call, result, pointer)
                                                : result;
}

/* What the driver leaves where memory is short: NULL for a pointer, a handle as it was. */
static inline CUresult gos_call_refuse(CUdeviceptr *pointer)
{
    if (pointer)
        *pointer = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * A call whose hook can return other memory than the driver's (GPUOOMSHIM_FALLBACK):
 *
 *     do
 *         result = gos_call_goes_on(&call, pointer)
 *                      ? gos_call_keep(&call, GOS_REAL(…)(pointer, …), pointer)
 *                      : gos_call_answer(&call, pointer);
 *     while (gos_call_again(&call, result));
 */
static inline struct gos_call gos_call_replaceable(struct gos_call call)
{
    call.replaceable = true;
    return call;
}

/* Is the driver to be asked?  Else gos_call_answer. */
static inline bool gos_call_goes_on(struct gos_call *call, const CUdeviceptr *pointer)
{
    return __builtin_expect(call->substitute == 0, 1) && gos_call_admits(call, pointer);
}

/* In the driver's place: other memory, or what it would have said. */
static inline CUresult gos_call_answer(const struct gos_call *call, CUdeviceptr *pointer)
{
    if (call->substitute == 0)
        return gos_call_refuse(pointer);
    *pointer = call->substitute;
    return CUDA_SUCCESS;
}

bool gos_call_failed(struct gos_call *call, CUresult result);

static inline bool gos_call_again(struct gos_call *call, CUresult result)
{
    return __builtin_expect(result != CUDA_SUCCESS, 0) && gos_call_failed(call, result);
}

/* The allocation exists: record it.  Returns result. */
CUresult gos_call_made(struct gos_call *call, CUresult result, uint64_t address);

/*
 * What the host is told of a call that failed in the end: what it would have
 * been told without us.  A retry may meet another error; it is the next call's.
 */
static inline CUresult gos_call_refused(const struct gos_call *call, CUresult result)
{
    return call->first_result != CUDA_SUCCESS ? call->first_result : result;
}

/*
 * The call had nothing to record (watched), or its hook did so itself.  Returns
 * what the host is to get.
 */
CUresult gos_call_done_slow(struct gos_call *call, CUresult result);
static inline bool gos_call_ends_story(const struct gos_call *call, CUresult result)
{
    return call->bytes > 0 && gos_story_open && result == CUDA_SUCCESS;
}
static inline CUresult gos_call_done(struct gos_call *call, CUresult result)
{
    bool ends = gos_call_ends_story(call, result);

    if (__builtin_expect(call->failure || ends || call->rehearsed, 0))
        result = gos_call_done_slow(call, result);
    return __builtin_expect(result != CUDA_SUCCESS, 0) ? gos_call_refused(call, result) : result;
}

/* --- giving back ---------------------------------------------------------------------------- */

/* Around each free, of the helper's: see gos_driver_is_held. */
static inline void gos_free_enters(void)
{
    if (__builtin_expect(gos_thread.is_helper, 0))
        atomic_store(&gos_driver_held, true);
}
static inline void gos_free_left(void)
{
    if (__builtin_expect(gos_thread.is_helper, 0))
        atomic_store(&gos_driver_held, false);
}

/*
 * Forget the allocation before the driver frees it, never after: once the real
 * call has returned, another thread may already own the same address, and
 * erasing then would drop its record instead of ours.  When the driver refuses
 * the free, the record goes back with its old stack and age.
 */
struct gos_free {
    struct gos_allocation gone;
    bool known;
    int16_t entry;
    uint64_t address;
};

struct gos_free gos_free_begin(enum gos_entrypoint entry, enum gos_space space, uint64_t address);
/* The same in place, without copying what was just written: for the cheapest calls. */
void gos_free_begin_in(struct gos_free *free, enum gos_entrypoint entry, enum gos_space space,
                       uint64_t address);
CUresult gos_free_end(struct gos_free *free, CUresult result);
/* A free in stream order: the bytes are pending until the stream gets there. */
CUresult gos_free_end_async(struct gos_free *free, CUresult result, CUstream stream,
                            bool per_thread);

/* --- helpers of the hooks -------------------------------------------------------------------- */

/* Is the thread in the host's code (not inside a call of our own), with tracking on? */
static inline bool gos_call_tracks(void)
{
    return gos_shim_active() && gos_thread.depth == 0;
}

/* Note a failure as an event, for hooks that do not retry. */
void gos_call_note(enum gos_entrypoint entry, CUresult result);

#endif
