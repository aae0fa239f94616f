/*
 * The interpreter's lock, given up by a failing thread while it waits.
 *
 * A failing thread never takes it: it may be inside an allocator whose lock
 * others take while they hold the GIL.  But one that holds it would keep the
 * helper, or whoever recovers for it, from ever running, so it lets go for the
 * wait and takes back what it had.
 *
 * Hook context.  No lock of ours that a thread with the GIL might wait for is
 * held across gos_gil_retake, except the turn to recover, whose waiters let go
 * of the GIL likewise.
 */
#ifndef GOS_OBSERVE_GIL_H
#define GOS_OBSERVE_GIL_H

#include <stdbool.h>

/* Does the calling thread hold it?  False where there is no interpreter. */
bool gos_gil_is_held(void);

/* What gos_gil_retake wants; NULL: this thread did not hold it, nothing was done. */
void *gos_gil_release(void);
void gos_gil_retake(void *released); /* NULL is fine */

#endif
