/*
 * Stream-ordered frees since the stream was last known to be drained.
 *
 * Hook context: yes.  Adding is lock-free for a stream that was seen before.
 * A free that races with the drain of its own stream may be taken for drained.
 */
#ifndef GOS_TRACK_PENDING_H
#define GOS_TRACK_PENDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/thread.h"
#include "handle_map.h"

/* Streams at once; with more, those without pending frees are forgotten first. */
#define GOS_STREAM_MAX 1024

/*
 * Numbers that mean the default streams are made one: 1 (CU_STREAM_LEGACY) is
 * 0, 2 (CU_STREAM_PER_THREAD) is 0 with per_thread.  There is one per-thread
 * stream for each thread and context.
 */
struct gos_pending {
    uint64_t stream;
    uint64_t context; /* current when the free was made: stream 0 is per context */
    uint32_t device;
    bool per_thread; /* stream 0 means the per-thread default stream */
    uint32_t thread; /* out: gos_thread_index of the per-thread stream's owner, else 0 */
    uint64_t bytes;
    uint64_t count;
};

/*
 * Threads that free on one stream write lines of their own.  All stripes but
 * the last belong to one thread each, which so needs no locked instruction;
 * threads that find theirs taken meet at the last one.
 *
 * Freed since the slot began, and how much of that was seen to be over: sums that only grow.
 */
struct gos_pending_stripe {
    _Alignas(64) _Atomic uint64_t bytes;
    _Atomic uint64_t count;
    _Atomic uint64_t drained_bytes; /* these two under the lock */
    _Atomic uint64_t drained_count;
    _Atomic uint32_t owner; /* gos_thread_index; 0: nobody's yet */
};

/*
 * Where this thread's last free went: valid for one generation, and while the
 * stripe is still the thread's own (a slot that begins anew has no owners).
 */
struct gos_pending_last {
    _Alignas(64) struct gos_pending_stripe *stripe; /* NULL: none, or not its own */
    uint64_t generation;
    uint64_t stream;
    uint64_t context;
    bool per_thread;
};
extern __thread struct gos_pending_last gos_pending_last __attribute__((tls_model("initial-exec")));

static inline void gos_pending_add_own(struct gos_pending_stripe *stripe, uint64_t bytes,
                                       uint64_t count)
{
    uint64_t bytes_now = atomic_load_explicit(&stripe->bytes, memory_order_relaxed);
    uint64_t count_now = atomic_load_explicit(&stripe->count, memory_order_relaxed);

    atomic_store_explicit(&stripe->bytes, bytes_now + bytes, memory_order_relaxed);
    atomic_store_explicit(&stripe->count, count_now + count, memory_order_relaxed);
}

/* Adds bytes and count to the stream's; a new stream with a full table is counted as lost. */
void gos_pending_add(const struct gos_pending *one);

/* One more free where this thread's last one went; false: it did not go there, nothing is added. */
static inline bool gos_pending_add_again(uint64_t stream, uint64_t context, bool per_thread,
                                         uint64_t bytes)
{
    const struct gos_pending_last *last = &gos_pending_last;
    struct gos_pending_stripe *stripe = last->stripe;

    if (__builtin_expect(
            !stripe || last->generation != gos_handle_generation() || last->stream != stream ||
                last->context != context || last->per_thread != per_thread ||
                atomic_load_explicit(&stripe->owner, memory_order_relaxed) != gos_thread.index,
            0))
        return false;
    gos_pending_add_own(stripe, bytes, 1);
    return true;
}
/*
 * Nothing pending any more.  Of the default streams: 1 the context's legacy
 * stream, 2 the calling thread's own, 0 both.
 */
void gos_pending_drained(uint64_t stream, uint64_t context);
void gos_pending_stream_destroyed(uint64_t stream);
/*
 * Is it known?  A created stream is from its first free until its destruction
 * begins (or until a full table forgets it, drained); default streams always.
 */
bool gos_pending_knows(uint64_t stream);
/* Streams with pending frees; returns how many were copied. */
size_t gos_pending_list(struct gos_pending *pending, size_t max);

void gos_pending_context_destroyed(uint64_t context); /* by gos_context_destroyed */
void gos_pending_reset_after_fork(void);              /* by gos_pool_reset_after_fork */

#endif
