/*
 * Whom to ask for idle memory after one failure, and whom not.
 *
 * A framework whose allocator is on the failing stack is not asked: it holds
 * its lock there, and it asks itself anyway.  Frames of the framework outside
 * its allocator do not matter; for pinned memory, whose allocator is not a
 * library of its own, each frame of the framework does.
 */
#ifndef GOS_RECOVER_FLUSH_PLAN_H
#define GOS_RECOVER_FLUSH_PLAN_H

#include <stdbool.h>

#include "../diagnose/diagnosis.h"

struct gos_flush_plan {
    bool pinned; /* pinned host memory is wanted, and only that: torch's and CuPy's caches of it */
    bool torch;
    bool cupy;
    bool named;     /* GPUOOMSHIM_FLUSH */
    bool callbacks; /* gpuoomshim_register_flush */
};

/*
 * On the failing thread, inside the hook: walks its stack.  NULL when the plan
 * names somebody; else why not, in words for the report.
 */
const char *gos_flush_plan_make(const struct gos_diagnosis *diagnosis, struct gos_flush_plan *plan);

/*
 * Is the calling thread inside the allocator of a framework, and so perhaps
 * in the way of whoever asks that framework?  Hook context.
 */
bool gos_flush_caller_is_in_allocator(void);

#endif
