/*
 * Evidence of the moment at which a failure was put off, for the case that it
 * is told only when the process ends.
 *
 * A failure that the caller survives must cost it well under a millisecond.  So
 * only what changes quickly is taken (GOS_OBSERVE_MOMENT), only while few
 * allocations are live, and once for a run of failures between which nothing
 * was allocated or freed.
 *
 * Hook context.
 */
#ifndef GOS_SHIM_MOMENT_H
#define GOS_SHIM_MOMENT_H

#include "../observe/evidence.h"

/*
 * Evidence about the request.  Takes over `earlier` (NULL: none), which it
 * gives back where it still holds, and frees otherwise.  NULL: too much is live,
 * or there is no memory for it.
 */
struct gos_evidence *gos_moment_take(const struct gos_request *request,
                                     struct gos_evidence *earlier);

void gos_moment_free(struct gos_evidence *evidence); /* NULL is fine */

/* Moves the evidence into a zeroed one, and adds what does not change quickly. */
void gos_moment_finish(struct gos_evidence *evidence, struct gos_evidence *moment);

#endif
