/*
 * flush: frameworks that keep idle memory are asked to give it back, while the
 * failing call waits.
 *
 * The asking is done on a helper thread, because each of them may need a lock
 * that somebody else holds; the failing call waits no longer than
 * GPUOOMSHIM_FLUSH_BUDGET.  A failing thread that holds the GIL lets go of it for
 * the wait only if it is the interpreter's main one.  Elsewhere (observe/gil.h)
 * frameworks and named functions are asked on the failing thread itself, under
 * the GIL that it has, which such a function gives up for a while as it always
 * does; or nobody is, where the interpreter may end meanwhile.
 *
 * torch's cuBLAS workspaces stay unless GPUOOMSHIM_FLUSH names them: the call
 * that failed may be a launch with the address of one among its arguments,
 * another thread may be about to make such a launch, and so may a captured graph.
 * Nothing that can be seen from here rules that out.
 */
#ifndef GOS_RECOVER_STEP_FLUSH_H
#define GOS_RECOVER_STEP_FLUSH_H

#include "ladder.h"

bool gos_step_flush_may_help(const struct gos_ladder *ladder, const char **why_not);
/* Fills result, reason, giver.  True when a retry makes sense. */
bool gos_step_flush_run(struct gos_ladder *ladder, struct gos_step_record *record);

void gos_step_flush_reset_after_fork(void);

#endif
