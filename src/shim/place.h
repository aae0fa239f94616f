/*
 * Where an allocation is: device and home from the context, the stream or the
 * pool, asked of the driver once and remembered per thread.  Hook context.
 */
#ifndef GOS_SHIM_PLACE_H
#define GOS_SHIM_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct gos_place {
    uint64_t context;
    uint32_t device; /* ordinal; GOS_DEVICE_HOST when no context tells */
    uint16_t home;
    bool is_managed; /* from a pool of managed memory */
};

/*
 * Of the thread's current context.  This answer and the next function's lie in
 * the thread's memory until the thread asks again.
 */
const struct gos_place *gos_place_of_context(void);

/*
 * Of a stream (0, 1, 2: the default streams of the current context) on which a call
 * succeeded, or failed for want of memory, and a pool (0: its current one).
 */
const struct gos_place *gos_place_of_stream(uint64_t stream, uint64_t pool);

/* Likewise, the context that the stream belongs to; the current one for a default stream. */
uint64_t gos_place_context_of_stream(uint64_t stream);

#endif
