/*
 * The one place where the order of events of a failure lives:
 *
 *     describe → story → observe → diagnose → ladder → retry … → report
 *
 * All of it runs on the failing thread, inside the hook, with
 * gos_thread.depth raised, and ends before the host's call returns.
 */
#ifndef GOS_SHIM_FAILURE_H
#define GOS_SHIM_FAILURE_H

#include <stdbool.h>

#include "call.h"

struct gos_failure;

/* A hooked call failed (again).  True: ask the driver once more. */
bool gos_failure_handle(struct gos_call *call, CUresult result);

/* The call is over; result says how.  Writes the report or its draft; kept.h owns it then. */
void gos_failure_close(struct gos_failure *failure, CUresult result);

/* --- what becomes of one that is kept (failure_kept.c) --------------------------------------- */

/*
 * A refusal that is not told now, or again at a place that was: evidence of this
 * moment as far as that costs little, and the draft.  Takes over `failure` (NULL:
 * the first) and returns what is to be kept; NULL: there was no memory for it.
 */
struct gos_failure *gos_failure_note(struct gos_failure *failure,
                                     const struct gos_request *request);

/* It was put off, and nothing answered it: the report, and the line about it. */
void gos_failure_tell_late(struct gos_failure *failure);

/* Its report was written; later refusals are in the draft alone: the report is written anew. */
void gos_failure_update(struct gos_failure *failure);

/* The caller got what it wanted after all: a report says so, a draft goes. */
void gos_failure_survived(struct gos_failure *failure, bool was_told);

/* The story ended with our help: what was put down for an end of the process goes. */
void gos_failure_answered(struct gos_failure *failure);

/* What a framework said once the call had returned: a new verdict, and the report with it. */
void gos_failure_learn(struct gos_failure *failure, const char *answer);

void gos_failure_free(struct gos_failure *failure); /* NULL is fine */

/* --- reports without a failing call ----------------------------------------------------------- */

/* A snapshot report now; path_prefix NULL: as failure reports are named.  0 or -errno. */
int gos_failure_snapshot(const char *path_prefix);

/* A Python exception ends the program, or a thread: what no report says yet is told. */
void gos_failure_python_ends(void);

/* The process ends: likewise; the exit report if asked for. */
void gos_failure_at_exit(void);

void gos_failure_reset_after_fork(void);

#endif
