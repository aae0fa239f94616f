/*
 * A stream that we are about to hand to the driver, kept from being destroyed
 * or captured by another thread for as long as that takes.
 *
 * The user says which stream it is and then looks whether the books still know
 * it, and not as captured; who destroys or captures changes the books and then
 * looks whether it is in use.  So one of the two sees the other.  The latter
 * waits for one driver call that waits for nothing itself, and no lock is held,
 * so nothing can deadlock.
 *
 * Hook context.
 */
#ifndef GOS_TRACK_STREAM_USE_H
#define GOS_TRACK_STREAM_USE_H

#include <stdint.h>

/* For gos_stream_use_end; -1: gone, captured, or about to be; or too many are in use. */
__attribute__((warn_unused_result)) int gos_stream_use_begin(uint64_t stream);
void gos_stream_use_end(int use);

/*
 * The host destroys or captures the stream, as the books say already.  Returns
 * when nobody uses it; at once on a thread that is inside a call of our own.
 */
void gos_stream_use_wait(uint64_t stream);

void gos_stream_use_reset_after_fork(void); /* by gos_pool_reset_after_fork */

#endif
