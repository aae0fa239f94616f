/*
 * wait: other processes hold what is missing, and may end (GPUOOMSHIM_WAIT).
 *
 * The device's free bytes are looked at until there is room or the budget is
 * used up.  The budget is for the same processes: all threads and all later
 * failures share it, so nobody waits again for who has stayed, whatever small
 * ones come and go beside them.  It begins anew when newcomers hold what is
 * missing, or when the others have given back as much.  It is not part of
 * GPUOOMSHIM_RETRY_BUDGET.
 *
 * What is free the driver tells of the current context's device, NVML of
 * another one, as when a first context finds no room.
 *
 * The interpreter's main thread lets go of the GIL for the wait; another one that
 * holds it does not wait (observe/gil.h).
 */
#ifndef GOS_RECOVER_STEP_WAIT_H
#define GOS_RECOVER_STEP_WAIT_H

#include "ladder.h"

bool gos_step_wait_is_asked_for(void);
bool gos_step_wait_may_help(const struct gos_ladder *ladder, const char **why_not);
/* Fills result, reason.  True when a retry makes sense.  Says two lines on stderr. */
bool gos_step_wait_run(struct gos_ladder *ladder, struct gos_step_record *record);

/* So much longer than GPUOOMSHIM_RETRY_BUDGET may whoever recovers take. */
uint64_t gos_step_wait_longest_ns(void);

void gos_step_wait_reset_after_fork(void);

#endif
