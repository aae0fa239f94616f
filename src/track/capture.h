/*
 * Stream captures in progress anywhere in the process.
 *
 * A capture ends by its call, or with its stream or context.
 *
 * Hook context: yes.  While nothing is captured, asking costs one load.
 */
#ifndef GOS_TRACK_CAPTURE_H
#define GOS_TRACK_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Captures that are known by their stream; more are only counted. */
#define GOS_CAPTURE_MAX 256

/*
 * The stream as the driver's default ABI takes it; the context is that of the
 * stream.  Said before the driver is asked; if it refuses, the capture has ended.
 */
void gos_capture_began(uint64_t stream, uint64_t context);
/* False for a capture whose beginning we did not see. */
bool gos_capture_ended(uint64_t stream);
void gos_capture_context_ended(uint64_t context);
/* Whose line began it: after gos_capture_began, which notes the time and the thread. */
void gos_capture_begun_at(uint64_t stream, uint32_t site);

extern _Atomic unsigned gos_capture_total;
static inline unsigned gos_capture_count(void)
{
    return atomic_load_explicit(&gos_capture_total, memory_order_relaxed);
}
bool gos_capture_has(uint64_t stream);

/* Where a capture began; began_wall_ns 0: it is not known. */
struct gos_capture_origin {
    uint64_t stream;
    uint64_t began_wall_ns;
    int tid;
    uint32_t site;
};
/* Of that stream's capture; without one, of the newest anywhere.  Asks no driver. */
struct gos_capture_origin gos_capture_find(uint64_t stream);

/*
 * The graph of the capture that began on this stream, kept until it ends: if it
 * fails, the driver tells no more.  0: none is known.
 */
void gos_capture_makes(uint64_t stream, uint64_t graph);
uint64_t gos_capture_made(uint64_t stream);

/*
 * Is the calling thread's stream being captured?  Asks the driver about streams
 * that may have joined another's capture, and about the per-thread default
 * stream, of which each thread has its own (per_thread: stream 0 is that).
 */
bool gos_capture_includes_now(uint64_t stream, bool per_thread);
static inline bool gos_capture_includes(uint64_t stream, bool per_thread)
{
    return __builtin_expect(gos_capture_count() > 0, 0) &&
           gos_capture_includes_now(stream, per_thread);
}
/* The graph into which that stream is being captured, by the driver; 0: none, or it cannot tell. */
uint64_t gos_capture_graph(uint64_t stream, bool per_thread);

void gos_capture_reset_after_fork(void); /* by gos_pool_reset_after_fork */

#endif
