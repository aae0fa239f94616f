/*
 * The interpreter's lock, which a failing thread may hold.
 *
 * A failing thread never takes it: it may be inside an allocator whose lock
 * others take while they hold the GIL.  Nor does it let go of one that it
 * holds merely to look at something.  The host may guard its own data by it, in
 * an extension that never lets go; and a thread that comes back for the GIL
 * while the interpreter is ending is ended right there, in the middle of the
 * host's frames.  Only for help that others give, and only on the interpreter's
 * main thread, which is the one that ends it, is the GIL let go of.
 *
 * Builds without the GIL: a thread that is attached to the interpreter counts as
 * one that holds it.  A thread that stops the world, as for a collection, waits until
 * it is detached, and nothing is guarded by its being attached.  So there each
 * thread that the interpreter awaits is detached for each wait.
 *
 * Hook context.  No lock of ours that a thread with the GIL might wait for is
 * held across gos_gil_retake, except the turn to recover, for which a thread
 * with the GIL does not wait long.
 */
#ifndef GOS_OBSERVE_GIL_H
#define GOS_OBSERVE_GIL_H

#include <stdbool.h>

enum gos_gil {
    GOS_GIL_NOT_HELD, /* or there is no interpreter: others may take it for this thread */
    GOS_GIL_MAY_GO,   /* held by the main thread, or there is none to keep: gos_gil_release */
    GOS_GIL_STAYS,    /* held by a thread whose end the interpreter awaits before its own */
    GOS_GIL_IN_DANGER /* held by one that it does not await, or of which that is not known */
};

/* How it is with the calling thread.  No code of the host runs for it. */
enum gos_gil gos_gil_state(void);

bool gos_gil_is_held(void);

/* What gos_gil_retake wants; NULL: it is not held, or may not go, and nothing was done. */
void *gos_gil_release(void);
/* The same for a wait that no flush needs: only in builds without the GIL. */
void *gos_gil_detach(void);
void gos_gil_retake(void *released); /* NULL is fine */

#endif
