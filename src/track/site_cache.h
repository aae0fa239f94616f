/*
 * Stacks that were interned before, by their raw words: a direct-mapped table
 * in front of the locked one.  The words are kept beside it and compared, so a
 * hit is never a guess.
 *
 * Not locked: it belongs to whoever claimed the stack cache around it.
 */
#ifndef GOS_TRACK_SITE_CACHE_H
#define GOS_TRACK_SITE_CACHE_H

#include <stdint.h>

#include "site.h"

#define GOS_SITE_CACHE_ENTRIES 1024 /* a power of two */
#define GOS_SITE_CACHE_WORDS (32 * 1024)

/* All zero is empty. */
struct gos_site_cache {
    struct gos_site_cache_entry {
        uint64_t hash; /* 0: empty */
        uint32_t id;
        uint32_t at; /* first word */
        const char *tag;
        uint16_t native_count;
        uint16_t python_count;
    } entries[GOS_SITE_CACHE_ENTRIES];
    /* Filled from the start; when it is full everything is forgotten. */
    uint32_t word_count;
    uint64_t words[GOS_SITE_CACHE_WORDS];
};

/* The number of that stack, or 0.  hash is of all its words. */
uint32_t gos_site_cache_find(const struct gos_site_cache *cache, const struct gos_stack *stack,
                             uint64_t hash);
void gos_site_cache_put(struct gos_site_cache *cache, const struct gos_stack *stack, uint64_t hash,
                        uint32_t id);

#endif
