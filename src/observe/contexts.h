/*
 * CUDA contexts that are known to be alive, by device, and visiting them.
 *
 * Looking at a device needs a current context of it.  We never create or
 * retain one: we use the calling thread's, else one in which live memory was
 * allocated or freed.
 */
#ifndef GOS_OBSERVE_CONTEXTS_H
#define GOS_OBSERVE_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../cuda/driver.h"
#include "snapshot.h"

#define GOS_CONTEXTS_MAX 64

struct gos_contexts {
    uint64_t contexts[GOS_CONTEXTS_MAX];
    uint32_t devices[GOS_CONTEXTS_MAX];
    size_t count;
};

/* The thread's current context comes first.  Its device is asked of the driver. */
void gos_contexts_collect(struct gos_contexts *contexts, const struct gos_snapshot *snapshot);

/* A context of that device, 0 if none is known. */
uint64_t gos_contexts_of(const struct gos_contexts *contexts, uint32_t device);

/* How many contexts of that device are known. */
uint32_t gos_contexts_count(const struct gos_contexts *contexts, uint32_t device);

/* A visit to a context: what has to be undone. */
struct gos_contexts_visit {
    CUcontext before;
    bool pushed;
};

/* Make the context current.  False: it could not be, and there is nothing to leave. */
bool gos_contexts_enter(struct gos_contexts_visit *visit, uint64_t context);
/* Make current again what was current before. */
void gos_contexts_leave(const struct gos_contexts_visit *visit);

#endif
