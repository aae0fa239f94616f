/*
 * One failure at a time is looked into: whose turn it is.
 *
 * This is the one lock that is held across driver calls, and across waits for
 * the GIL, where a thread can come to its end (the interpreter is ending, it is
 * cancelled): then the next that wants the turn inherits it.  It is taken only by
 * failing threads, and never while another lock of ours is held.  Threads that
 * fail together share the outcome of the first: what recovered memory for it
 * may serve them, and where nothing helped, its report tells of all of them that
 * are of the same origin.
 *
 * Hook context, but that a wait for the turn lets go of the host's GIL.
 */
#ifndef GOS_SHIM_TURN_H
#define GOS_SHIM_TURN_H

#include <stdbool.h>

#include "../observe/evidence.h"

/*
 * Waits as long as one recovery may take; false: it took longer, and the turn
 * is not ours.  again: for a call that had to wait before.
 */
bool gos_turn_take(bool again);

/* What this call has spent so, without the time in which other processes were waited for. */
uint64_t gos_turn_spent_ns(void);

/* The rest is for whoever has the turn. */

/*
 * Was the last story about this failure too?  shared: the call was asked again
 * on the strength of that story before; once is enough, then it is its own.
 */
bool gos_turn_is_told(const struct gos_request *request, bool shared);

/* Gives the turn back: this failure's story has ended. */
void gos_turn_end(const struct gos_request *request, bool recovered);

/* Gives the turn back without a story.  Did the last one end in recovery? */
bool gos_turn_pass(void);

void gos_turn_reset_after_fork(void);

#endif
