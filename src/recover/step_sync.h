/*
 * sync: wait for the streams that hold freed memory, and only for those.
 *
 * A free in stream order counts for cuMemAlloc only once the host has seen
 * that the stream got past it; seeing it is the remedy even where the work
 * itself has long been done.
 *
 * All of the streams are looked at, and those that are done are drained; the
 * others are waited for only until enough has come back, and not at all where
 * all of it would be too little.
 */
#ifndef GOS_RECOVER_STEP_SYNC_H
#define GOS_RECOVER_STEP_SYNC_H

#include "ladder.h"

/* With all that is freed and idle, the request would still not fit. */
bool gos_step_sync_is_too_little(const struct gos_ladder *ladder);
bool gos_step_sync_may_help(const struct gos_ladder *ladder, const char **why_not);
/* Fills result, reason, cuda_result, and sync_left_some.  True when a retry makes sense. */
bool gos_step_sync_run(struct gos_ladder *ladder, struct gos_step_record *record);

#endif
