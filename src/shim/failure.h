/*
 * The one place where the order of events of a failure lives:
 *
 *     describe → episode → observe → diagnose → ladder → retry … → report
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

/* The call is over; result says how.  Writes the report and gives the failure to its episode. */
void gos_failure_close(struct gos_failure *failure, CUresult result);

/* The caller got what it wanted after all: the report is rewritten to say so. */
void gos_failure_survived(struct gos_failure *failure);

/* What a framework said once the call had returned: a new verdict, and the report with it. */
void gos_failure_learn(struct gos_failure *failure, const char *answer);

void gos_failure_free(struct gos_failure *failure); /* NULL is fine */

/* A snapshot report now; path_prefix NULL: as failure reports are named.  0 or -errno. */
int gos_failure_snapshot(const char *path_prefix);

/* An exception ends the program, or a thread: on its thread, with the GIL. */
void gos_failure_python_ends(void);

/* The process ends: what was deferred is told; the exit report if asked for. */
void gos_failure_at_exit(void);

void gos_failure_reset_after_fork(void);

#endif
