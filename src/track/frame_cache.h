/*
 * Single frames that were resolved before: return addresses and Python
 * references by the number of their frame (frame_table.h).  A new stack is
 * mostly made of known frames, so this is what a new stack costs.
 *
 * After an unload it must be emptied: an address may be another module's then.
 *
 * Not locked: it belongs to whoever claimed the stack cache around it.
 */
#ifndef GOS_TRACK_FRAME_CACHE_H
#define GOS_TRACK_FRAME_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "site.h"

/*
 * With one way, two of a stack's sixty frames would often push each other out
 * each time.
 */
#define GOS_FRAME_CACHE_SETS 512 /* a power of two */
#define GOS_FRAME_CACHE_WAYS 2

/* All zero is empty.  In a set the entry that was filled last comes first. */
struct gos_frame_cache {
    struct gos_native_cache_entry {
        uintptr_t address;
        uint32_t number; /* 0: empty */
    } native[GOS_FRAME_CACHE_SETS][GOS_FRAME_CACHE_WAYS];
    struct gos_python_cache_entry {
        struct gos_python_ref ref;
        uint32_t number;
    } python[GOS_FRAME_CACHE_SETS][GOS_FRAME_CACHE_WAYS];
};

/* A stack's frames by their numbers, newest first: native ones, then Python's. */
struct gos_frame_numbers {
    uint32_t native_count;
    uint32_t python_count; /* those that could be decoded; native ones always can */
    uint32_t numbers[2 * GOS_FRAME_MAX];
};

/* Resolve a captured stack.  cache may be NULL.  False when memory ran out. */
bool gos_frames_resolve(struct gos_frame_cache *cache, const struct gos_stack *stack,
                        struct gos_frame_numbers *frames);

#endif
