/*
 * Failures that were handed back in silence because their caller asks again,
 * kept for the case that it does not: then they are told when the process ends.
 *
 * One for each thread, of a few threads: the newest, and those of threads that
 * still live before those of threads that are gone.  With each, where its
 * caller's last attempt cannot be told, the evidence of its moment (moment.h).
 *
 * Hook context.
 */
#ifndef GOS_SHIM_DEFERRED_H
#define GOS_SHIM_DEFERRED_H

#include <stdbool.h>

#include "../observe/evidence.h"

/* In place of the thread's earlier one; takes over the evidence (NULL: none). */
void gos_deferred_set(const struct gos_request *request, struct gos_evidence *evidence);
/* Takes the evidence of the thread's earlier one; NULL: there is none. */
struct gos_evidence *gos_deferred_take_evidence(int tid);
/* The thread's is answered. */
void gos_deferred_clear(int tid);
/* Takes the newest, with its evidence or NULL; false: there is none. */
bool gos_deferred_take(struct gos_request *request, struct gos_evidence **evidence);

void gos_deferred_reset_after_fork(void);

#endif
