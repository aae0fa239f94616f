/*
 * What is kept of more Python frames than fit: the newest and the outermost, for
 * a program's own line often lies outside of all that it calls.  Between them
 * stands a reference to no code, which is decoded as a frame of GOS_PYTHON_CUT.
 * Pure functions over references.
 */
#ifndef GOS_TRACK_PYTHON_CUT_H
#define GOS_TRACK_PYTHON_CUT_H

#include <stdint.h>

#include "site.h"

/* Outermost frames that are kept; a quarter where few are kept at all. */
#define GOS_PYTHON_OUTER_MAX 8
/* Where fewer than these are kept, only the newest are, and nothing tells of others. */
#define GOS_PYTHON_CUT_MIN 4
/* Beyond so many further frames nobody looks for the outermost ones. */
#define GOS_PYTHON_FURTHER_MAX 512

/* Frames that come after those that fit; all zero at first. */
struct gos_python_further {
    uint32_t count;
    struct gos_python_ref last[GOS_PYTHON_OUTER_MAX]; /* number i at i % GOS_PYTHON_OUTER_MAX */
};

static inline void gos_python_further_add(struct gos_python_further *further,
                                          const struct gos_python_ref *ref)
{
    further->last[further->count++ % GOS_PYTHON_OUTER_MAX] = *ref;
}

/*
 * `refs` has the newest `max` frames, `further` those that follow: at least one.  With
 * GOS_PYTHON_FURTHER_MAX of them the outermost are not known, and the mark is the end.
 */
void gos_python_cut(struct gos_python_ref *refs, uint32_t max,
                    const struct gos_python_further *further);

#endif
