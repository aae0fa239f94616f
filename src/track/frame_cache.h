/*
 * Single frames that were resolved before: return addresses by module, Python
 * references by file, function and line.  A new stack is mostly made of known
 * frames, so this is what a new stack costs.
 *
 * After an unload it must be emptied: an address may be another module's then.
 *
 * Not locked: it belongs to whoever claimed the stack cache around it.
 */
#ifndef GOS_TRACK_FRAME_CACHE_H
#define GOS_TRACK_FRAME_CACHE_H

#include <stdint.h>

#include "site.h"

#define GOS_FRAME_CACHE_ENTRIES 1024 /* a power of two */

/* All zero is empty. */
struct gos_frame_cache {
    struct gos_native_frame native[GOS_FRAME_CACHE_ENTRIES];
    struct gos_python_cache_entry {
        struct gos_python_ref ref;
        struct gos_python_frame frame;
    } python[GOS_FRAME_CACHE_ENTRIES];
};

/*
 * Resolve a captured stack, newest first, into arrays of GOS_FRAME_MAX whose
 * padding is zero.  cache may be NULL.  Returns the number of Python frames
 * that could be decoded; native ones always can.
 */
void gos_frames_resolve_native(struct gos_frame_cache *cache, const struct gos_stack *stack,
                               struct gos_native_frame *frames);
uint32_t gos_frames_resolve_python(struct gos_frame_cache *cache, const struct gos_stack *stack,
                                   struct gos_python_frame *frames);

#endif
