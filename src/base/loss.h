/*
 * Lost bookkeeping is counted and reported, never returned to the host; a
 * broken invariant trips the fuse, after which every hook passes through.
 */
#ifndef GOS_BASE_LOSS_H
#define GOS_BASE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

enum gos_loss {
    GOS_LOSS_MEMORY,    /* metadata memory could not be had: a record is missing */
    GOS_LOSS_UNTRACKED, /* a free of a pointer that we never saw */
    GOS_LOSS_STACK,     /* a stack could not be captured */
    GOS_LOSS_TABLE,     /* a fixed table was full (homes, modules) */
    GOS_LOSS_REPORT,    /* a report could not be written */
    GOS_LOSS_WORD,      /* torch's own function, which we stand before, was not found */
    GOS_LOSS_COUNT
};

void gos_loss_count(enum gos_loss loss);
uint64_t gos_loss_get(enum gos_loss loss);
const char *gos_loss_name(enum gos_loss loss); /* "metadata memory" … */

/* Says `what` once on stderr and turns every hook into a pass-through. */
void gos_fuse_trip(const char *what);
bool gos_fuse_tripped(void);
const char *gos_fuse_reason(void); /* NULL while whole */

#endif
