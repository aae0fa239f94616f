/*
 * Stream-ordered frees since the stream was last known to be drained.
 *
 * Hook context: yes.  Adding is lock-free for a stream that was seen before.
 * A free that races with the drain of its own stream may be taken for drained.
 */
#ifndef GOS_TRACK_PENDING_H
#define GOS_TRACK_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Adds bytes and count to the stream's; a new stream with a full table is counted as lost. */
void gos_pending_add(const struct gos_pending *one);
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
