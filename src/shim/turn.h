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
 * The one that has the turn may need the GIL, for its flush, or to return from
 * one.  A thread that waits for the turn with the GIL would keep it from that, and
 * does not let go of it (observe/gil.h): so it waits only so long as a step that
 * needs no GIL takes, 20 ms, and then goes on without the turn, and so without
 * recovery.  The other gets the GIL when the host next gives it up; until then its
 * helper has its own time limit.
 *
 * Hook context.
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

/* Why the turn is not this thread's, in words for the report. */
const char *gos_turn_refusal(void);

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
