/*
 * A stream that we are about to hand to the driver, kept from being destroyed
 * by another thread for as long as that takes.
 *
 * The user says which stream it is and then looks whether the books still know
 * it; who destroys takes it off the books and then looks whether it is in use.
 * So one of the two sees the other.  The destroyer waits for one driver call
 * that waits for nothing itself, and no lock is held, so nothing can deadlock.
 *
 * Hook context.
 */
#ifndef GOS_TRACK_STREAM_USE_H
#define GOS_TRACK_STREAM_USE_H

#include <stdint.h>

/* For gos_stream_use_end; -1: it is gone or about to go, or too many are in use. */
__attribute__((warn_unused_result)) int gos_stream_use_begin(uint64_t stream);
void gos_stream_use_end(int use);

/*
 * The host destroys the stream, which is off the books already.  Returns when
 * nobody uses it; at once on a thread that is inside a call of our own.
 */
void gos_stream_use_wait(uint64_t stream);

void gos_stream_use_reset_after_fork(void); /* by gos_pool_reset_after_fork */

#endif
