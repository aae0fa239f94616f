/*
 * Failures that were handed back in silence because their caller asks again,
 * kept for the case that it does not: then they are told when the process ends.
 *
 * One for each thread, of a few threads: the newest, and those of threads that
 * still live before those of threads that are gone.
 *
 * Hook context.
 */
#ifndef GOS_SHIM_DEFERRED_H
#define GOS_SHIM_DEFERRED_H

#include <stdbool.h>

#include "../observe/evidence.h"

/* In place of the thread's earlier one. */
void gos_deferred_set(const struct gos_request *request);
/* The thread's is answered. */
void gos_deferred_clear(int tid);
/* Takes the newest; false: there is none. */
bool gos_deferred_take(struct gos_request *request);

void gos_deferred_reset_after_fork(void);

#endif
