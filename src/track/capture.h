/*
 * Stream captures in progress anywhere in the process.
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

void gos_capture_began(uint64_t stream);
void gos_capture_ended(uint64_t stream);
extern _Atomic unsigned gos_capture_total;
static inline unsigned gos_capture_count(void)
{
    return atomic_load_explicit(&gos_capture_total, memory_order_relaxed);
}
bool gos_capture_has(uint64_t stream);

void gos_capture_reset_after_fork(void); /* by gos_pool_reset_after_fork */

#endif
