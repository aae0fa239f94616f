/*
 * Memory that stands in for what the device did not have (GPUOOMSHIM_FALLBACK).
 * Its records in the registry are of its own kind; here is which they are,
 * because some of them must be freed otherwise than the host will try to.
 *
 * Hook context.  Lock-free, so that a signal handler may free.
 */
#ifndef GOS_TRACK_FALLBACK_H
#define GOS_TRACK_FALLBACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "registry.h"

/* FALLBACK(NAME, "code") in the order in which they are tried. */
#define GOS_FALLBACKS(FALLBACK)                                                                    \
    FALLBACK(SYNC, "async-to-sync")                                                                \
    FALLBACK(MANAGED, "managed")                                                                   \
    FALLBACK(HOST, "host")

enum gos_fallback {
#define GOS_FALLBACK_ENUM(name, code) GOS_FALLBACK_##name,
    GOS_FALLBACKS(GOS_FALLBACK_ENUM)
#undef GOS_FALLBACK_ENUM
        GOS_FALLBACK_COUNT
};
const char *gos_fallback_code(enum gos_fallback fallback);

#define GOS_FALLBACK_MAX 256 /* alive at once */

struct gos_fallback_memory {
    uint64_t address; /* what the host was given; never 0 or 1 */
    uint64_t host;    /* HOST: what cuMemHostAlloc gave */
    uint64_t bytes;
    uint64_t context;
    uint64_t event; /* freed by the host and not by us yet: what has to come to pass first */
    uint32_t device;
    enum gos_fallback way;
};

/* How many are alive; 0 costs a free one load. */
extern _Atomic uint32_t gos_fallback_count;

/* False when there are too many. */
__attribute__((warn_unused_result)) bool gos_fallback_add(const struct gos_fallback_memory *memory);
/* The one that the host holds at that address; taken, it is no longer known. */
bool gos_fallback_find(uint64_t address, struct gos_fallback_memory *found);
bool gos_fallback_take(uint64_t address, struct gos_fallback_memory *taken);
/* One of those that the host has freed and whose event `is_over`. */
bool gos_fallback_take_freed(bool (*is_over)(uint64_t event), struct gos_fallback_memory *taken);

/* Of the device, alive or not freed by us yet. */
struct gos_total gos_fallback_total(uint32_t device, enum gos_fallback way);

/* With the context its memory is gone, and its events. */
void gos_fallback_context_ended(uint64_t context);
void gos_fallback_reset_after_fork(void); /* by gos_registry_reset_after_fork */

#endif
